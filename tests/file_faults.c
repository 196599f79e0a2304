/* Counts the file operations below a folder, and makes one of them fail or the process end there.
 *
 * Preloaded (LD_PRELOAD), so that it sees what Python, Arrow, numpy and the tokenizers do alike. Reads and writes inside
 * the C library's own stdio are not seen. faults_arm(folder, at, mode, error) starts counting; modes:
 *   0 count only        1 end the process at operation `at`, a write after half of it
 *   2 operation `at` fails with `error`        3 everything that takes space fails with `error` from `at` on
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define DESCRIPTORS 65536
static char root[4096];
static size_t root_length;
static long fault_at;
static int fault_mode, fault_error;
static atomic_long counted;
static atomic_char below[DESCRIPTORS];

void faults_arm(const char *folder, long at, int mode, int error) {
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    fault_at = at, fault_mode = mode, fault_error = error;
    atomic_store(&counted, 0);
}
long faults_counted(void) { return atomic_load(&counted); }

static int path_below(const char *path) { return root_length && path && !strncmp(path, root, root_length); }
static int descriptor_below(int fd) { return fd >= 0 && fd < DESCRIPTORS && below[fd]; }
static int at_below(int fd, const char *path) { return path_below(path) || (path && path[0] != '/' && descriptor_below(fd)); }

/* Whether the operation fails; `half` is the descriptor and bytes of a write that is cut short by the end. */
static int strikes(int concerned, int takes_space, int fd, const void *data, size_t half) {
    if (!concerned || !root_length) return 0;
    long now = atomic_fetch_add(&counted, 1) + 1;
    int hit = fault_mode == 3 ? now >= fault_at && takes_space : now == fault_at && fault_mode != 0;
    if (!hit) return 0;
    if (fault_mode == 1) {
        ssize_t (*really)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
        if (half && really(fd, data, half) < 0) _exit(9);
        _exit(9);
    }
    errno = fault_error;
    return 1;
}
#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define PASS(concerned, takes_space) if (strikes(concerned, takes_space, -1, 0, 0)) return -1

static int mark(int fd, int concerned) {
    if (fd >= 0 && fd < DESCRIPTORS) below[fd] = concerned;
    return fd;
}
#define MODE_ARGUMENT mode_t mode = 0; \
    if (flags & O_CREAT) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) {
    MODE_ARGUMENT REAL(open);
    PASS(path_below(path), flags & O_CREAT);
    return mark(real(path, flags, mode), path_below(path));
}
int open64(const char *path, int flags, ...) {
    MODE_ARGUMENT REAL(open64);
    PASS(path_below(path), flags & O_CREAT);
    return mark(real(path, flags, mode), path_below(path));
}
int openat(int at, const char *path, int flags, ...) {
    MODE_ARGUMENT REAL(openat);
    int concerned = at_below(at, path);
    PASS(concerned, flags & O_CREAT);
    return mark(real(at, path, flags, mode), concerned);
}
int openat64(int at, const char *path, int flags, ...) {
    MODE_ARGUMENT REAL(openat64);
    int concerned = at_below(at, path);
    PASS(concerned, flags & O_CREAT);
    return mark(real(at, path, flags, mode), concerned);
}
int close(int fd) { REAL(close); mark(fd, 0); return real(fd); }
ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    if (strikes(descriptor_below(fd), 1, fd, data, size / 2)) return -1;
    return real(fd, data, size);
}
ssize_t writev(int fd, const struct iovec *parts, int count) { REAL(writev); PASS(descriptor_below(fd), 1); return real(fd, parts, count); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { REAL(pwrite); PASS(descriptor_below(fd), 1); return real(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { REAL(pwrite64); PASS(descriptor_below(fd), 1); return real(fd, data, size, at); }
ssize_t read(int fd, void *data, size_t size) { REAL(read); PASS(descriptor_below(fd), 0); return real(fd, data, size); }
ssize_t pread(int fd, void *data, size_t size, off_t at) { REAL(pread); PASS(descriptor_below(fd), 0); return real(fd, data, size, at); }
ssize_t pread64(int fd, void *data, size_t size, off64_t at) { REAL(pread64); PASS(descriptor_below(fd), 0); return real(fd, data, size, at); }
int fsync(int fd) { REAL(fsync); PASS(descriptor_below(fd), 1); return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); PASS(descriptor_below(fd), 1); return real(fd); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); PASS(descriptor_below(fd), 0); return real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); PASS(descriptor_below(fd), 0); return real(fd, size); }
int rename(const char *from, const char *to) { REAL(rename); PASS(path_below(from) || path_below(to), 1); return real(from, to); }
int link(const char *from, const char *to) { REAL(link); PASS(path_below(to), 1); return real(from, to); }
int linkat(int a, const char *from, int b, const char *to, int flags) { REAL(linkat); PASS(at_below(b, to), 1); return real(a, from, b, to, flags); }
int unlink(const char *path) { REAL(unlink); PASS(path_below(path), 0); return real(path); }
int unlinkat(int at, const char *path, int flags) { REAL(unlinkat); PASS(at_below(at, path), 0); return real(at, path, flags); }
int rmdir(const char *path) { REAL(rmdir); PASS(path_below(path), 0); return real(path); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); PASS(path_below(path), 1); return real(path, mode); }
int chmod(const char *path, mode_t mode) { REAL(chmod); PASS(path_below(path), 0); return real(path, mode); }
int fchmod(int fd, mode_t mode) { REAL(fchmod); PASS(descriptor_below(fd), 0); return real(fd, mode); }
int fchmodat(int at, const char *path, mode_t mode, int flags) { REAL(fchmodat); PASS(at_below(at, path), 0); return real(at, path, mode, flags); }
int utimensat(int at, const char *path, const struct timespec times[2], int flags) { REAL(utimensat); PASS(at_below(at, path), 0); return real(at, path, times, flags); }
