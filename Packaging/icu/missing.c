// Says so when something asks for ICU data that this program does not have. Foundation would work on without it, in another
// way than on a system with all of it. The linker puts these functions between ICU's loader and its callers (--wrap).

#include <string.h>
#include <unistd.h>

typedef int Accept(void *, const char *, const char *, const void *);

void *__real_swift_udata_openChoice(const char *, const char *, const char *, Accept *, void *, int *);
void *__wrap_swift_udata_openChoice(const char *, const char *, const char *, Accept *, void *, int *);

static void say(const char *text) {
    if (text && write(2, text, strlen(text)) < 0) return;
}

void *__wrap_swift_udata_openChoice(
    const char *path, const char *type, const char *name, Accept *accept, void *context, int *error) {
    static int has_said;
    void *data = __real_swift_udata_openChoice(path, type, name, accept, context, error);
    if (!data && !__atomic_exchange_n(&has_said, 1, __ATOMIC_RELAXED)) {
        say("fk: warning: the ICU data ");
        say(name);
        say(".");
        say(type);
        say(" are not in this program; please report it.\n");
    }
    return data;
}
