/* Tells ThreadSanitizer of the slow path of Swift's Mutex.
 *
 * The fast path is atomic operations in our own code, which it sees. Once two threads meet, the mutex is handed over by
 * the kernel (FUTEX_LOCK_PI), called by a library that is not instrumented: without this every such meeting is reported
 * as a race. Loaded before that library by `scripts/test --sanitize thread`; it calls what it stands in for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

/* <sanitizer/tsan_interface.h>; absent in a process that the sanitizer is not part of, as a shell in between. */
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

static void *next(const char *symbol) {
    void *found = dlsym(RTLD_NEXT, symbol);
    if (!found) abort();
    return found;
}

/* Synchronization._MutexHandle._lockSlow(Swift.UInt32) -> () */
SWIFT void lock_slow(uint32_t thread, SELF) __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
SWIFT void lock_slow(uint32_t thread, SELF) {
    static SWIFT void (*original)(uint32_t, SELF);
    if (!original) original = next("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
    original(thread, self);
    if (__tsan_acquire) __tsan_acquire(self);
}

/* Synchronization._MutexHandle._tryLockSlow() -> Swift.Bool */
SWIFT _Bool try_lock_slow(SELF) __asm__("$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF");
SWIFT _Bool try_lock_slow(SELF) {
    static SWIFT _Bool (*original)(SELF);
    if (!original) original = next("$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF");
    _Bool is_locked = original(self);
    if (is_locked && __tsan_acquire) __tsan_acquire(self);
    return is_locked;
}

/* Synchronization._MutexHandle._unlockSlow() -> () */
SWIFT void unlock_slow(SELF) __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
SWIFT void unlock_slow(SELF) {
    static SWIFT void (*original)(SELF);
    if (!original) original = next("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
    if (__tsan_release) __tsan_release(self);
    original(self);
}
