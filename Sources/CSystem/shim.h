#ifndef FK_CSYSTEM_SHIM_H
#define FK_CSYSTEM_SHIM_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* CRC-32C with the processor's own instructions, which Swift does not offer: 1 GiB takes 0.1 s instead of 0.6 s with tables,
   and 0.04 s with three runs at once (x86_64). The state has no inversions at the start and end of the algorithm. */
enum { FK_CRC32C_RUN = 1360 }; /* bytes; 12 times that is just below 16 KiB, the size of libcurl's pieces */
#if defined(__x86_64__)
#define FK_CRC32C __attribute__((target("sse4.2")))
#define FK_CRC32C_WORD(crc, word) __builtin_ia32_crc32di(crc, word)
#define FK_CRC32C_BYTE(crc, byte) __builtin_ia32_crc32qi(crc, byte)
static inline int fk_has_crc32c(void) { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__AARCH64EL__)
#if defined(__clang__)
#define FK_CRC32C __attribute__((target("crc")))
#else
#define FK_CRC32C __attribute__((target("+crc")))
#endif
#define FK_CRC32C_WORD(crc, word) __builtin_arm_crc32cd((uint32_t)(crc), word)
#define FK_CRC32C_BYTE(crc, byte) __builtin_arm_crc32cb(crc, byte)
#if !defined(__clang__)
#define __builtin_arm_crc32cd __builtin_aarch64_crc32cx
#define __builtin_arm_crc32cb __builtin_aarch64_crc32cb
#endif
#if defined(__linux__)
#include <sys/auxv.h>
/* Optional in ARMv8.0: bit 7 of the hardware capabilities, HWCAP_CRC32 in Linux's asm/hwcap.h. */
static inline int fk_has_crc32c(void) { return (getauxval(AT_HWCAP) & 1 << 7) != 0; }
#elif defined(__APPLE__)
static inline int fk_has_crc32c(void) { return 1; } /* every arm64 processor of Apple has them */
#else
static inline int fk_has_crc32c(void) { return 0; }
#endif
#else
/* There is no instruction, and the functions below are never called. */
#define FK_CRC32C
#define FK_CRC32C_WORD(crc, word) (crc)
#define FK_CRC32C_BYTE(crc, byte) (crc)
static inline int fk_has_crc32c(void) { return 0; }
#endif
static inline uint64_t fk_word(const unsigned char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}
static inline uint32_t fk_shift(uint32_t crc, const uint32_t *shift) {
    return shift[crc & 255] ^ shift[256 + (crc >> 8 & 255)] ^ shift[512 + (crc >> 16 & 255)] ^ shift[768 + (crc >> 24)];
}
FK_CRC32C static inline uint32_t fk_crc32c(uint32_t crc, const void *bytes, size_t count) {
    const unsigned char *next = (const unsigned char *)bytes;
    uint64_t wide = crc;
    for (; count >= 8; count -= 8, next += 8) wide = FK_CRC32C_WORD(wide, fk_word(next));
    crc = (uint32_t)wide;
    for (; count > 0; count--, next++) crc = FK_CRC32C_BYTE(crc, *next);
    return crc;
}
/* Computes `count` triples of runs. A step waits three cycles for the previous step of its own run, but not for the other two
   runs. `shift` has four tables of 256: the effect of one run of zero bytes on each byte of a state. */
FK_CRC32C static inline uint32_t fk_crc32c_triples(
    uint32_t crc, const void *bytes, size_t count, const uint32_t *shift) {
    const unsigned char *next = (const unsigned char *)bytes;
    for (; count > 0; count--, next += 3 * FK_CRC32C_RUN) {
        uint64_t first = crc, second = 0, third = 0;
        for (size_t offset = 0; offset < FK_CRC32C_RUN; offset += 8) {
            first = FK_CRC32C_WORD(first, fk_word(next + offset));
            second = FK_CRC32C_WORD(second, fk_word(next + FK_CRC32C_RUN + offset));
            third = FK_CRC32C_WORD(third, fk_word(next + 2 * FK_CRC32C_RUN + offset));
        }
        crc = fk_shift((uint32_t)first, shift) ^ (uint32_t)second;
        crc = fk_shift(crc, shift) ^ (uint32_t)third;
    }
    return crc;
}

/* Joinable threads. Each system has another call to name them. */
#include <pthread.h>
#if defined(__linux__)
#include <sys/prctl.h>
static inline void fk_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
#elif defined(__APPLE__)
static inline void fk_name_thread(const char *name) { pthread_setname_np(name); }
#else
static inline void fk_name_thread(const char *name) {}
#endif
typedef struct {
    pthread_t id;
} fk_thread;
/* Starts a thread. A stack of 0 bytes means the system's usual size. Returns 0 or the system's error number. */
static inline int fk_start_thread(fk_thread *thread, size_t stack, void *(*body)(void *), void *context) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack > 0) pthread_attr_setstacksize(&attributes, stack);
    int code = pthread_create(&thread->id, &attributes, body, context);
    pthread_attr_destroy(&attributes);
    return code;
}
static inline int fk_is_current_thread(fk_thread thread) { return pthread_equal(thread.id, pthread_self()); }
static inline void fk_join_thread(fk_thread thread) { pthread_join(thread.id, NULL); }
static inline void fk_detach_thread(fk_thread thread) { pthread_detach(thread.id); }

/* Extended attributes, with one signature for all systems. On Linux, Swift does not import their header. */
#include <errno.h>
#include <sys/types.h>
#include <sys/xattr.h>
/* The error number for a missing attribute on a file system that supports attributes. */
#if defined(ENOATTR)
static const int fk_no_attribute = ENOATTR;
#else
static const int fk_no_attribute = ENODATA;
#endif
#if defined(__APPLE__)
static inline int fk_set_attribute(int file, const char *name, const void *value, size_t size) {
    return fsetxattr(file, name, value, size, 0, 0);
}
static inline ssize_t fk_get_attribute(int file, const char *name, void *value, size_t size) {
    return fgetxattr(file, name, value, size, 0, 0);
}
static inline int fk_remove_attribute(int file, const char *name) { return fremovexattr(file, name, 0); }
/* The same by a path, without following a symlink. */
static inline ssize_t fk_get_path_attribute(const char *path, const char *name, void *value, size_t size) {
    return getxattr(path, name, value, size, 0, XATTR_NOFOLLOW);
}
#else
static inline int fk_set_attribute(int file, const char *name, const void *value, size_t size) {
    return fsetxattr(file, name, value, size, 0);
}
static inline ssize_t fk_get_attribute(int file, const char *name, void *value, size_t size) {
    return fgetxattr(file, name, value, size);
}
static inline int fk_remove_attribute(int file, const char *name) { return fremovexattr(file, name); }
static inline ssize_t fk_get_path_attribute(const char *path, const char *name, void *value, size_t size) {
    return lgetxattr(path, name, value, size);
}
#endif

#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
#include <dirent.h>
#include <stdlib.h>
#include <sys/syscall.h>
#endif
/* When a file was created, in nanoseconds since 1970; 0 where the system or the file system does not tell. `path` is in `folder`,
   or "" for the open file itself. A symlink is not followed. */
#if defined(__linux__)
static inline int64_t fk_born(int folder, const char *path) {
#if defined(SYS_statx)
    struct { /* `struct statx` of the kernel, whose header does not go together with glibc's */
        uint32_t mask, block;
        uint64_t attributes;
        uint32_t links, uid, gid;
        uint16_t mode, pad;
        uint64_t inode, size, blocks, known;
        struct { int64_t seconds; uint32_t nanoseconds; int32_t pad; } accessed, born, changed, written;
        uint64_t rest[16];
    } status;
    memset(&status, 0, sizeof status);
    /* AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW; STATX_BTIME */
    if (syscall(SYS_statx, folder, path, 0x1000 | 0x100, 0x800, &status) != 0 || !(status.mask & 0x800)) return 0;
    return status.born.seconds * 1000000000 + status.born.nanoseconds;
#else
    return 0;
#endif
}
#elif defined(__APPLE__)
#include <sys/stat.h>
static inline int64_t fk_born(int folder, const char *path) {
    struct stat status;
    int code = *path ? fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) : fstat(folder, &status);
    return code == 0 ? (int64_t)status.st_birthtimespec.tv_sec * 1000000000 + status.st_birthtimespec.tv_nsec : 0;
}
#else
static inline int64_t fk_born(int folder, const char *path) { return 0; }
#endif
/* A lock of an open file, which ends with its last descriptor and which two descriptors of one process do not share. It is on a
   byte behind every file, because some network file systems refuse to read and write locked bytes. Swift imports neither the
   commands nor the structure. */
#if defined(__APPLE__)
enum { fk_try_lock_command = 90, fk_ask_lock_command = 92 }; /* F_OFD_SETLK, F_OFD_GETLK */
#else
enum { fk_try_lock_command = 37, fk_ask_lock_command = 36 };
#endif
static inline int fk_lock_command(int file, int command, struct flock *lock, int type) {
    memset(lock, 0, sizeof *lock);
    lock->l_type = (short)type;
    lock->l_whence = SEEK_SET;
    lock->l_start = (off_t)1 << 62;
    lock->l_len = 1;
    return fcntl(file, command, lock);
}
/* Takes the lock of a file that is open for writing. Returns 0, or -1 with errno; EAGAIN or EACCES if it is held. */
static inline int fk_lock(int file) {
    struct flock lock;
    return fk_lock_command(file, fk_try_lock_command, &lock, F_WRLCK);
}
static inline void fk_unlock(int file) {
    struct flock lock;
    fk_lock_command(file, fk_try_lock_command, &lock, F_UNLCK);
}
/* 1 if another descriptor holds the lock, 0 if none does, -1 with errno if the file system has no locks. It takes none. */
static inline int fk_is_locked(int file) {
    struct flock lock;
    return fk_lock_command(file, fk_ask_lock_command, &lock, F_WRLCK) != 0 ? -1 : lock.l_type != F_UNLCK;
}
/* The kernel's time in nanoseconds since 1970, as it sets times of files: some milliseconds behind the clock. */
#include <time.h>
static inline int64_t fk_file_time(void) {
    struct timespec now;
#if defined(CLOCK_REALTIME_COARSE)
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
#else
    clock_gettime(CLOCK_REALTIME, &now);
#endif
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
/* Starts a program: own process group, no descriptor but 0, 1 and 2, no blocked or ignored signal. */
#if defined(__APPLE__)
#include <TargetConditionals.h>
#endif
/* Of Apple's systems only macOS starts programs: posix_spawn_file_actions_addchdir_np is not available on the others. */
#if defined(__linux__) || (defined(__APPLE__) && TARGET_OS_OSX)
#include <signal.h>
#include <spawn.h>
/* `descriptors` are above 2; they become 0, 1 and 2 of the program. Returns 0 or the system's error number. */
static inline int fk_spawn(
    pid_t *pid, const char *path, char *const arguments[], char *const environment[], const char *folder,
    const int descriptors[3]) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0) return code;
    code = posix_spawnattr_init(&attributes);
    if (code != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    for (int number = 0; number < 3 && code == 0; number++)
        code = posix_spawn_file_actions_adddup2(&actions, descriptors[number], number);
#if defined(__APPLE__)
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#elif defined(__GLIBC__)
    if (code == 0) code = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#else
    /* Musl has no such action. It ignores the descriptors that another thread closes in the meantime. */
    DIR *open = opendir("/proc/self/fd");
    if (open) {
        for (struct dirent *entry = readdir(open); entry && code == 0; entry = readdir(open)) {
            int number = atoi(entry->d_name);
            if (number > 2 && !(fcntl(number, F_GETFD) & FD_CLOEXEC))
                code = posix_spawn_file_actions_addclose(&actions, number);
        }
        closedir(open);
    }
#endif
    /* After the others: a missing folder must not leave the program with other descriptors than these. */
    if (code == 0) code = posix_spawn_file_actions_addchdir_np(&actions, folder);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, flags);
    if (code == 0) code = posix_spawn(pid, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}
#else
static inline int fk_spawn(
    pid_t *pid, const char *path, char *const arguments[], char *const environment[], const char *folder,
    const int descriptors[3]) { return ENOSYS; }
#endif
/* Makes a pipe whose ends are closed at exec. Returns 0, or -1 with errno. */
static inline int fk_pipe(int ends[2]) {
#if defined(SYS_pipe2)
    return (int)syscall(SYS_pipe2, ends, O_CLOEXEC);
#else
    if (pipe(ends) != 0) return -1;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return 0;
#endif
}
/* A descriptor that becomes readable when the process ends; -1 where the system has none. */
static inline int fk_process_descriptor(pid_t pid) {
#if defined(SYS_pidfd_open)
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    return -1;
#endif
}

/* Shares the blocks of a file with another one. Returns -1 where the file system cannot do that. */
#if defined(__linux__)
#include <sys/ioctl.h>
static inline int fk_clone(int to, int from) { return ioctl(to, _IOW(0x94, 9, int), from); } /* FICLONE of linux/fs.h */
#else
static inline int fk_clone(int to, int from) {
    (void)to;
    (void)from;
    errno = ENOTSUP;
    return -1;
}
#endif

#if defined(__linux__)
#include <sys/statfs.h>
/* The number of a path's file system in statfs(2), whose header Swift does not import; 0 if it cannot be asked. */
static inline uint32_t fk_file_system(const char *path) {
    struct statfs status;
    return statfs(path, &status) == 0 ? (uint32_t)status.f_type : 0;
}
#endif

#if defined(__linux__)
/* Foundation's own C interface to the libcurl that FoundationNetworking uses, which may differ from the one we link. No header
   of Foundation declares it. The functions below do nothing if it is not linked. */
extern int CFURLSession_easy_setopt_wc(
    void *easy, int option, size_t (*callback)(char *, size_t, size_t, void *)) __attribute__((weak));
extern int CFURLSession_easy_setopt_long(void *easy, int option, long value) __attribute__((weak));
static inline size_t fk_drop_bytes(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes;
    (void)context;
    return size * count;
}
/* Drops all further header lines. */
static inline void fk_foundation_drop_header_lines(void *easy) {
    const int header_function = 20079; /* CURLOPT_HEADERFUNCTION */
    if (CFURLSession_easy_setopt_wc) CFURLSession_easy_setopt_wc(easy, header_function, fk_drop_bytes);
}
/* Keeps the content coding of a body. Returns 1 on success. */
static inline int fk_foundation_keep_coding(void *easy) {
    const int content_decoding = 158; /* CURLOPT_HTTP_CONTENT_DECODING */
    return CFURLSession_easy_setopt_long && CFURLSession_easy_setopt_long(easy, content_decoding, 0) == 0;
}
#endif
#endif
