/* Loaded into fk with LD_PRELOAD: counts the calls that change something, over all threads and in their order, and at
 * the N-th of them kills the process or lets calls fail.
 *
 *   TORTURE_STATE   file of 4096 bytes, mapped shared: { calls so far, the call it fired at, bytes that part files took,
 *                   writes that were made short, text of that call }
 *   TORTURE_AT      N, from 1; 0 or absent only counts
 *   TORTURE_ACTION  before: killed instead of the call; half: half of a write is done, then killed, torn where the
 *                   kernel looks for signals, between two pages; after: killed once the call is done; EIO or ENOSPC:
 *                   the call fails so
 *   TORTURE_LASTS   "once", or "on": every call from the N-th on fails
 *   TORTURE_CALLS   "all" (default), or "disk": writes, syncs, names and folders and no network: what may fail
 *   TORTURE_LINKS   "1": renameat2 fails with EINVAL, as on file systems that cannot rename exclusively
 *   TORTURE_WRITES  "short": every write takes half of what it is given, and every third one is interrupted instead
 *   TORTURE_LOG     file to which every call that succeeded is appended, in the order of their effects (see `logged`)
 *   TORTURE_ENDS    "slow": what a thread does at its end takes a moment, so that the program may end before it
 *
 * Writes count when they go to a regular file. Strace counts for each thread of its own, which is why this exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

struct state {
    _Atomic uint64_t calls;
    _Atomic uint64_t fired;
    _Atomic uint64_t received;
    _Atomic uint64_t short_writes;
    char text[3992];
};

enum action { none, before, half, after, fail };

static struct state *state;
static uint64_t at;
static enum action action;
static int failure, lasts, disk_only, links, short_writes;
static int log_file = -1;
/* Held around a call and its line in the log, so that the lines have the order of the effects. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TORTURE_STATE"), *word;
    if (!path) return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (file < 0) return;
    void *base = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (base == MAP_FAILED) return;
    if ((word = getenv("TORTURE_AT"))) at = strtoull(word, NULL, 10);
    word = getenv("TORTURE_ACTION");
    word = word ? word : "";
    if (!strcmp(word, "before")) action = before;
    if (!strcmp(word, "half")) action = half;
    if (!strcmp(word, "after")) action = after;
    if (!strcmp(word, "EIO")) action = fail, failure = EIO;
    if (!strcmp(word, "ENOSPC")) action = fail, failure = ENOSPC;
    word = getenv("TORTURE_LASTS");
    lasts = word && !strcmp(word, "on");
    word = getenv("TORTURE_CALLS");
    disk_only = word && !strcmp(word, "disk");
    word = getenv("TORTURE_LINKS");
    links = word && !strcmp(word, "1");
    word = getenv("TORTURE_WRITES");
    short_writes = word && !strcmp(word, "short");
    if ((word = getenv("TORTURE_LOG")))
        log_file = (int)syscall(SYS_openat, AT_FDCWD, word, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    state = base;
}

static void end(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static void note(const char *name, const char *path, int descriptor, size_t count) {
    char link[64], target[3000] = "";
    if (!path && descriptor >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
    }
    snprintf(state->text, sizeof state->text, "%s %s %zu", name, path ? path : target, count);
}

/* What is to happen at this call. `before` is carried out here. */
static enum action counted(const char *name, const char *path, int descriptor, size_t count, int is_network) {
    if (!state || (is_network && disk_only)) return none;
    uint64_t number = atomic_fetch_add(&state->calls, 1) + 1;
    if (!at || number < at || (number > at && !lasts)) return none;
    if (number == at) {
        note(name, path, descriptor, count);
        atomic_store(&state->fired, number);
    }
    if (action == before) end();
    return action;
}

static void resolve(char *target, size_t room, const char *path, int descriptor) {
    char link[64];
    size_t length = 0;
    if (!path || path[0] != '/') {
        snprintf(link, sizeof link, descriptor == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", descriptor);
        ssize_t found = readlink(link, target, room - 1);
        length = found > 0 ? (size_t)found : 0;
        if (path && length < room - 1) target[length++] = '/';
    }
    if (path) length += (size_t)snprintf(target + length, room - length, "%s", path);
    target[length < room ? length : room - 1] = 0;
}

/* One line: name, path, second path, offset, count, nanoseconds since 1970, with tabs between; then `data`, if any, of
 * `count` bytes. */
static void logged(const char *name, int a, const char *from, int b, const char *to, long long offset, const void *data,
                   size_t count) {
    char first[4096], second[4096] = "", head[9000];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    resolve(first, sizeof first, from, a);
    if (to) resolve(second, sizeof second, to, b);
    int length = snprintf(head, sizeof head, "%s\t%s\t%s\t%lld\t%zu\t%lld\n", name, first, second, offset,
                          data ? count : 0, (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    struct iovec pieces[2] = {{head, (size_t)length}, {(void *)data, data ? count : 0}};
    syscall(SYS_writev, log_file, pieces, 2);
}

/* A call between the two is in the log when it succeeds. */
#define LOGGED(call, name, a, from, b, to, offset, data, count)                                                        \
    ({                                                                                                                 \
        if (log_file >= 0) pthread_mutex_lock(&log_lock);                                                              \
        __typeof__(call) done = (call);                                                                                \
        if (log_file >= 0) {                                                                                           \
            int number = errno;                                                                                        \
            if (done >= 0) logged(name, a, from, b, to, offset, data, count);                                          \
            pthread_mutex_unlock(&log_lock);                                                                           \
            errno = number;                                                                                            \
        }                                                                                                              \
        done;                                                                                                          \
    })

static int is_file(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

#define REAL(result, name, ...)                                                                                        \
    static result (*real)(__VA_ARGS__);                                                                                \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

/* After `counted`: the failure, or the call, or the call and then the end. */
#define FINISH(what, call)                                                                                             \
    do {                                                                                                               \
        enum action todo = (what);                                                                                     \
        if (todo == fail) return errno = failure, -1;                                                                  \
        if (todo == half) end();                                                                                       \
        __typeof__(call) result = (call);                                                                              \
        if (todo == after) end();                                                                                      \
        return result;                                                                                                 \
    } while (0)

#define PATH1(name, declaration, path, descriptor, ...)                                                                \
    int name declaration {                                                                                             \
        int (*real) declaration = (int(*) declaration)dlsym(RTLD_NEXT, #name);                                         \
        FINISH(counted(#name, path, descriptor, 0, 0),                                                                 \
               LOGGED(real(__VA_ARGS__), #name, descriptor >= 0 ? descriptor : AT_FDCWD, path, 0, NULL, 0, NULL, 0));  \
    }

/* The same for what is done beneath an open folder, with the length of a file or a second name. */
#define PATH2(name, declaration, path, a, from, b, to, offset, ...)                                                    \
    int name declaration {                                                                                             \
        int (*real) declaration = (int(*) declaration)dlsym(RTLD_NEXT, #name);                                         \
        FINISH(counted(#name, path, -1, 0, 0),                                                                         \
               LOGGED(real(__VA_ARGS__), #name, a, from, b, to, offset, NULL, 0));                                     \
    }

PATH1(mkdir, (const char *path, mode_t mode), path, -1, path, mode)
PATH2(mkdirat, (int folder, const char *path, mode_t mode), path, folder, path, 0, NULL, 0, folder, path, mode)
PATH1(rmdir, (const char *path), path, -1, path)
PATH1(unlink, (const char *path), path, -1, path)
PATH2(unlinkat, (int folder, const char *path, int flags), path, folder, path, 0, NULL, 0, folder, path, flags)
PATH2(rename, (const char *from, const char *to), to, AT_FDCWD, from, AT_FDCWD, to, 0, from, to)
PATH2(renameat, (int a, const char *from, int b, const char *to), to, a, from, b, to, 0, a, from, b, to)
PATH2(link, (const char *from, const char *to), to, AT_FDCWD, from, AT_FDCWD, to, 0, from, to)
PATH2(linkat, (int a, const char *from, int b, const char *to, int flags), to, a, from, b, to, 0, a, from, b, to, flags)
PATH1(symlink, (const char *from, const char *to), to, -1, from, to)
PATH1(chmod, (const char *path, mode_t mode), path, -1, path, mode)
PATH1(fchmod, (int file, mode_t mode), NULL, file, file, mode)
PATH1(fchmodat, (int folder, const char *path, mode_t mode, int flags), path, -1, folder, path, mode, flags)
PATH1(futimens, (int file, const struct timespec times[2]), NULL, file, file, times)
PATH1(truncate, (const char *path, off_t length), path, -1, path, length)
PATH1(truncate64, (const char *path, off64_t length), path, -1, path, length)
PATH2(ftruncate, (int file, off_t length), NULL, file, NULL, 0, NULL, length, file, length)
PATH2(ftruncate64, (int file, off64_t length), NULL, file, NULL, 0, NULL, length, file, length)
PATH1(fallocate, (int file, int mode, off_t offset, off_t length), NULL, file, file, mode, offset, length)
PATH1(fallocate64, (int file, int mode, off64_t offset, off64_t length), NULL, file, file, mode, offset, length)
PATH1(fsync, (int file), NULL, file, file)
PATH1(fdatasync, (int file), NULL, file, file)
PATH1(syncfs, (int file), NULL, file, file)
PATH1(sync_file_range, (int file, off64_t offset, off64_t count, unsigned flags), NULL, file, file, offset, count, flags)

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    REAL(int, renameat2, int, const char *, int, const char *, unsigned);
    if (links) return errno = EINVAL, -1;
    FINISH(counted("renameat2", to, -1, 0, 0), LOGGED(real(a, from, b, to, flags), "renameat2", a, from, b, to, 0, NULL, 0));
}

/* Not counted: nothing depends on the mark while the system is up. */
int fsetxattr(int file, const char *name, const void *value, size_t size, int flags) {
    REAL(int, fsetxattr, int, const char *, const void *, size_t, int);
    return LOGGED(real(file, name, value, size, flags), "fsetxattr", file, NULL, AT_FDCWD, name, 0, value, size);
}

int fremovexattr(int file, const char *name) {
    REAL(int, fremovexattr, int, const char *);
    return LOGGED(real(file, name), "fremovexattr", file, NULL, AT_FDCWD, name, 0, NULL, 0);
}

int posix_fallocate(int file, off_t offset, off_t length) {
    REAL(int, posix_fallocate, int, off_t, off_t);
    enum action todo = counted("posix_fallocate", NULL, file, 0, 0);
    if (todo == fail) return failure;
    if (todo == half) end();
    int result = real(file, offset, length);
    if (todo == after) end();
    return result;
}

#define OPEN(name, declaration, path, ...)                                                                             \
    int name declaration {                                                                                             \
        mode_t mode = 0;                                                                                               \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                                           \
            va_list rest;                                                                                              \
            va_start(rest, flags);                                                                                     \
            mode = va_arg(rest, mode_t);                                                                               \
            va_end(rest);                                                                                              \
        }                                                                                                              \
        int (*real) declaration = (int(*) declaration)dlsym(RTLD_NEXT, #name);                                         \
        if (!(flags & (O_CREAT | O_TRUNC))) return real(__VA_ARGS__);                                                  \
        FINISH(counted(#name, path, -1, 0, 0),                                                                         \
               LOGGED(real(__VA_ARGS__), #name, FOLDER, path, 0, NULL, 0, NULL, 0));                                   \
    }

#define FOLDER AT_FDCWD
OPEN(open, (const char *path, int flags, ...), path, path, flags, mode)
OPEN(open64, (const char *path, int flags, ...), path, path, flags, mode)
#undef FOLDER
#define FOLDER folder
OPEN(openat, (int folder, const char *path, int flags, ...), path, folder, path, flags, mode)
OPEN(openat64, (int folder, const char *path, int flags, ...), path, folder, path, flags, mode)

static void note_received(int descriptor, ssize_t count) {
    char link[64], target[4096];
    if (count <= 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, target, sizeof target);
    if (length > 7 && !memcmp(target + length - 7, ".fkpart", 7)) atomic_fetch_add(&state->received, (uint64_t)count);
}

/* Half of a write that begins at `offset`, cut where a page of the file ends. */
static size_t torn(off64_t offset, size_t count) {
    off64_t end = (offset + (off64_t)(count / 2)) & ~(off64_t)4095;
    return end > offset ? (size_t)(end - offset) : 0;
}

/* How much of a write of `count` bytes is done; -1 when it is interrupted. */
static ssize_t shortened(size_t count) {
    if (!short_writes) return (ssize_t)count;
    if (atomic_fetch_add(&state->short_writes, 1) % 3 == 2) return errno = EINTR, -1;
    return (ssize_t)(count - count / 2);
}

#define WRITE(name, declaration, file, count, whole, part)                                                             \
    ssize_t name declaration {                                                                                         \
        ssize_t(*real) declaration = (ssize_t(*) declaration)dlsym(RTLD_NEXT, #name);                                  \
        if (!state || !is_file(file)) return whole;                                                                    \
        ssize_t allowed = shortened((size_t)count);                                                                    \
        if (allowed < 0) return -1;                                                                                    \
        count = (__typeof__(count))allowed;                                                                            \
        enum action todo = counted(#name, NULL, file, count, 0);                                                       \
        if (todo == fail) return errno = failure, -1;                                                                  \
        ssize_t result = todo == half ? part : whole;                                                                  \
        note_received(file, result);                                                                                   \
        if (todo == half || todo == after) end();                                                                      \
        return result;                                                                                                 \
    }

WRITE(write, (int file, const void *bytes, size_t count), file, count,
      LOGGED(real(file, bytes, count), "write", file, NULL, 0, NULL, lseek64(file, 0, SEEK_CUR) - done, bytes, (size_t)done),
      real(file, bytes, torn(lseek64(file, 0, SEEK_CUR), count)))
WRITE(pwrite, (int file, const void *bytes, size_t count, off_t offset), file, count,
      LOGGED(real(file, bytes, count, offset), "pwrite", file, NULL, 0, NULL, offset, bytes, (size_t)done),
      real(file, bytes, torn(offset, count), offset))
WRITE(pwrite64, (int file, const void *bytes, size_t count, off64_t offset), file, count,
      LOGGED(real(file, bytes, count, offset), "pwrite", file, NULL, 0, NULL, offset, bytes, (size_t)done),
      real(file, bytes, torn(offset, count), offset))
WRITE(writev, (int file, const struct iovec *pieces, int count), file, count, real(file, pieces, count),
      real(file, pieces, (count + 1) / 2))
WRITE(pwritev, (int file, const struct iovec *pieces, int count, off_t offset), file, count,
      real(file, pieces, count, offset), real(file, pieces, (count + 1) / 2, offset))
WRITE(copy_file_range, (int from, off64_t *a, int file, off64_t *b, size_t count, unsigned flags), file, count,
      real(from, a, file, b, count, flags), real(from, a, file, b, count / 2, flags))
WRITE(sendfile, (int file, int from, off_t *offset, size_t count), file, count, real(file, from, offset, count),
      real(file, from, offset, count / 2))

static int is_network(int descriptor) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(descriptor, (struct sockaddr *)&address, &length) != 0) return 0;
    return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

ssize_t send(int file, const void *bytes, size_t count, int flags) {
    REAL(ssize_t, send, int, const void *, size_t, int);
    if (!state || disk_only || !is_network(file)) return real(file, bytes, count, flags);
    FINISH(counted("send", NULL, file, count, 1), real(file, bytes, count, flags));
}

ssize_t sendto(int file, const void *bytes, size_t count, int flags, const struct sockaddr *to, socklen_t length) {
    REAL(ssize_t, sendto, int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    if (!state || disk_only || !is_network(file)) return real(file, bytes, count, flags, to, length);
    FINISH(counted("sendto", NULL, file, count, 1), real(file, bytes, count, flags, to, length));
}

/* Destructors of thread-specific values: the first eight that are made, each behind one that waits. */
static void (*destructors[8])(void *);
static atomic_int made;

#define SLOW(index)                                                                                                    \
    static void slow##index(void *value) {                                                                             \
        usleep((useconds_t)(rand() % 4000));                                                                           \
        destructors[index](value);                                                                                     \
    }
SLOW(0) SLOW(1) SLOW(2) SLOW(3) SLOW(4) SLOW(5) SLOW(6) SLOW(7)
static void (*const slow[8])(void *) = {slow0, slow1, slow2, slow3, slow4, slow5, slow6, slow7};

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    REAL(int, pthread_key_create, pthread_key_t *, void (*)(void *));
    const char *word = getenv("TORTURE_ENDS");
    if (destructor && word && !strcmp(word, "slow")) {
        int index = atomic_fetch_add(&made, 1);
        if (index < 8) {
            destructors[index] = destructor;
            destructor = slow[index];
        }
    }
    return real(key, destructor);
}
