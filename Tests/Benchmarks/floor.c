/* The least that a downloader over libcurl costs which gives fk's guarantees: 16 handles that are used again, and for each
   file the system calls that fk makes. An info file is made, and read again when its task begins; a part is made and
   identified; its bytes are written; before it gets its name, it is looked for under its own, marked with its task, and the
   info file says what follows. As large a receive buffer as fk's, and the same blocks are written. No queue, no records, no rules, one thread. What fk takes
   beyond this is fk's own; what this takes beyond curl is the price of the guarantees.

   floor LIST: downloads the URLs of the list, one a line, into the current folder. */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { HANDLES = 16, RECORD = 1200, PIECE = 16 << 10, BLOCK = 64 << 10 };

typedef struct {
    CURL *easy;
    int info_file, part;
    struct stat made;
    off_t position;
    char block[BLOCK];
    size_t gathered;
    char name[256], info[300], partname[300];
} Transfer;

static char record[RECORD];
static int folder;

static void put(Transfer *transfer, const char *bytes, size_t count) {
    if (pwrite(transfer->part, bytes, count, transfer->position) != (ssize_t)count) exit(1);
    transfer->position += count;
}

static size_t received(char *bytes, size_t size, size_t count, void *context) {
    Transfer *transfer = context;
    count *= size;
    if (count < PIECE && transfer->gathered == 0) {
        put(transfer, bytes, count);
        return count;
    }
    for (size_t left = count; left > 0;) {
        size_t room = BLOCK - transfer->gathered, part = left < room ? left : room;
        memcpy(transfer->block + transfer->gathered, bytes + (count - left), part);
        transfer->gathered += part;
        left -= part;
        if (transfer->gathered < BLOCK) break;
        put(transfer, transfer->block, BLOCK);
        transfer->gathered = 0;
    }
    return count;
}

static void make_info(const char *name, long number) {
    char path[300];
    snprintf(path, sizeof path, ".floor/%02lx/%s.info", number & 255, name);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (pwrite(file, record, RECORD, 64) != RECORD) exit(1);
    close(file);
}

static void begin(CURLM *multi, Transfer *transfer, const char *url, long number) {
    snprintf(transfer->name, sizeof transfer->name, "%s", strrchr(url, '/') + 1);
    snprintf(transfer->info, sizeof transfer->info, ".floor/%02lx/%s.info", number & 255, transfer->name);
    snprintf(transfer->partname, sizeof transfer->partname, ".%s.part", transfer->name);
    char info[4096];
    transfer->info_file = open(transfer->info, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (pread(transfer->info_file, info, sizeof info, 0) < RECORD) exit(1);
    transfer->part = openat(folder, transfer->partname, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fstat(transfer->part, &transfer->made) != 0) exit(1);
    transfer->position = 0;
    curl_easy_setopt(transfer->easy, CURLOPT_URL, url);
    curl_multi_add_handle(multi, transfer->easy);
}

static void end(CURLM *multi, Transfer *transfer) {
    curl_multi_remove_handle(multi, transfer->easy);
    put(transfer, transfer->block, transfer->gathered);
    transfer->gathered = 0;
    struct stat named;
    if (fstatat(folder, transfer->partname, &named, AT_SYMLINK_NOFOLLOW) != 0 || named.st_ino != transfer->made.st_ino) exit(1);
    fsetxattr(transfer->part, "user.fkdownloader.task", record, 57, 0);
    if (pwrite(transfer->info_file, record, RECORD, 64 + RECORD) != RECORD) exit(1);
    close(transfer->info_file);
    renameat2(folder, transfer->partname, folder, transfer->name, RENAME_NOREPLACE);
    close(transfer->part);
}

int main(int count, char **words) {
    char **urls = NULL, line[2048], path[32];
    long total = 0, next = 0, left = 0;
    FILE *list = count == 2 ? fopen(words[1], "r") : NULL;
    if (!list) return 2;
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        urls = realloc(urls, (total + 1) * sizeof *urls);
        urls[total++] = strdup(line);
    }
    folder = open(".", O_RDONLY | O_DIRECTORY);
    mkdir(".floor", 0700);
    for (int number = 0; number < 256; number++) {
        snprintf(path, sizeof path, ".floor/%02x", number);
        mkdir(path, 0700);
    }
    for (long number = 0; number < total; number++) make_info(strrchr(urls[number], '/') + 1, number);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURLM *multi = curl_multi_init();
    static Transfer transfers[HANDLES];
    for (int number = 0; number < HANDLES && next < total; number++, left++) {
        Transfer *transfer = &transfers[number];
        transfer->easy = curl_easy_init();
        curl_easy_setopt(transfer->easy, CURLOPT_BUFFERSIZE, 512L << 10);
        curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, received);
        curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
        curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
        begin(multi, transfer, urls[next], next);
        next++;
    }
    while (left > 0) {
        int running, messages;
        curl_multi_perform(multi, &running);
        CURLMsg *message;
        while ((message = curl_multi_info_read(multi, &messages))) {
            Transfer *transfer;
            if (message->msg != CURLMSG_DONE || message->data.result != CURLE_OK) return 1;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
            end(multi, transfer);
            if (next < total) {
                begin(multi, transfer, urls[next], next);
                next++;
            } else {
                left--;
            }
        }
        if (left > 0) curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    return 0;
}
