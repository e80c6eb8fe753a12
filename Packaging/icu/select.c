// Writes a package of ICU data to standard output: the items of the toolchain's package that are named as arguments.
//
// The form is ICU's "CmnD": a header, the number of items, for each item the offsets of its name and its data, counted from the
// number, then names and data. DATA is the symbol of the toolchain's package.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char DATA[];

static uint32_t number(const unsigned char *place) {
    uint32_t value;
    memcpy(&value, place, sizeof value);
    return value;
}

static int is_wanted(const char *name, int count, char **wanted) {
    const char *base = strchr(name, '/');
    for (int i = 1; base && i < count; i++)
        if (!strcmp(base + 1, wanted[i])) return 1;
    return 0;
}

static uint32_t rounded(uint32_t size) { return (size + 15) & ~15u; }

int main(int count, char **wanted) {
    uint32_t header = DATA[0] | DATA[1] << 8;
    if (DATA[2] != 0xda || DATA[3] != 0x27 || memcmp(DATA + 12, "CmnD", 4)) {
        fputs("This is no package of ICU data.\n", stderr);
        return 1;
    }
    const unsigned char *table = DATA + header;
    uint32_t items = number(table), kept = 0, names = 0;
    for (uint32_t i = 0; i < items; i++) {
        const char *name = (const char *)table + number(table + 4 + 8 * i);
        // The length of the last item is unknown.
        if (i + 1 < items && is_wanted(name, count, wanted)) kept++, names += strlen(name) + 1;
    }
    if (kept + 1 != (uint32_t)count) {
        fprintf(stderr, "The package has %u of %d items.\n", kept, count - 1);
        return 1;
    }
    uint32_t name_offset = 4 + 8 * kept, start = rounded(header + name_offset + names) - header, offset = start;
    unsigned char *head = calloc(1, header + start);
    if (!head) return 1;
    memcpy(head, DATA, header);
    memcpy(head + header, &kept, 4);
    uint32_t index = 0;
    for (uint32_t i = 0; i + 1 < items; i++) {
        const char *name = (const char *)table + number(table + 4 + 8 * i);
        if (!is_wanted(name, count, wanted)) continue;
        memcpy(head + header + 4 + 8 * index, &name_offset, 4);
        memcpy(head + header + 8 + 8 * index++, &offset, 4);
        strcpy((char *)head + header + name_offset, name);
        name_offset += strlen(name) + 1;
        offset += rounded(number(table + 4 + 8 * (i + 1) + 4) - number(table + 4 + 8 * i + 4));
    }
    fwrite(head, 1, header + start, stdout);
    for (uint32_t i = 0; i + 1 < items; i++) {
        const char *name = (const char *)table + number(table + 4 + 8 * i);
        if (!is_wanted(name, count, wanted)) continue;
        uint32_t from = number(table + 4 + 8 * i + 4), size = number(table + 4 + 8 * (i + 1) + 4) - from;
        fwrite(table + from, 1, size, stdout);
        for (uint32_t rest = rounded(size) - size; rest > 0; rest--) fputc(0, stdout);
    }
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
