// Ends the process, or reports a full disk, right before the so-manieth system call that writes a file `*.new` or puts it in
// its place. For LD_PRELOAD; INTERRUPT_AT counts from 1, INTERRUPT_BY is "kill" or "fail".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int count;
static _Atomic int beside = -1;

// Whether the call is to fail.
static int interrupted(void) {
    const char *at = getenv("INTERRUPT_AT"), *by = getenv("INTERRUPT_BY");
    if (!at || !by || atomic_fetch_add(&count, 1) + 1 != atoi(at)) return 0;
    if (!strcmp(by, "kill")) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return 1;
}

static int is_beside(const char *path) {
    size_t length = strlen(path);
    return length > 4 && !strcmp(path + length - 4, ".new");
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (!is_beside(path)) return NEXT(open)(path, flags, mode);
    if (interrupted()) return -1;
    int file = NEXT(open)(path, flags, mode);
    beside = file;
    return file;
}

ssize_t write(int file, const void *bytes, size_t size) {
    // In two parts and more, so that a part of the file may be all there is.
    if (file == beside && interrupted()) return -1;
    return NEXT(write)(file, bytes, file == beside && size > 1024 ? size / 2 : size);
}

int fchmod(int file, mode_t mode) { return interrupted() ? -1 : NEXT(fchmod)(file, mode); }
int fsync(int file) { return interrupted() ? -1 : NEXT(fsync)(file); }
int rename(const char *from, const char *to) { return interrupted() ? -1 : NEXT(rename)(from, to); }
int close(int file) {
    if (file == beside) beside = -1;
    return NEXT(close)(file);
}
