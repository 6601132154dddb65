// Calls of Linux that Swift's Glibc module leaves out: epoll(7), eventfd(2), affinity, and the state
// of the clocks. Wrapped here are only those behind syscall(2), which is variadic, and macros.
#ifndef TIMELINE_GATEWAY_CLINUX_SHIM_H
#define TIMELINE_GATEWAY_CLINUX_SHIM_H

#include <linux/stat.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

// The calling thread's cores as a mask of `bytes` bytes, lowest core first. The first returns how
// many bytes the kernel filled, the second 0; both -1 with errno on failure.
static inline long gateway_get_affinity(void *mask, unsigned long bytes) {
    return syscall(SYS_sched_getaffinity, 0, bytes, mask);
}
static inline long gateway_set_affinity(const void *mask, unsigned long bytes) {
    return syscall(SYS_sched_setaffinity, 0, bytes, mask);
}

// Accepts a connection as a socket with `flags`, those of open(2); -1 with errno when there is none.
// accept4(2) has its own names for them, which the ABI makes the same. The peer's address goes to
// `address`, of `*bytes` bytes, which becomes its length.
static inline int gateway_accept(int listener, void *address, unsigned int *bytes, int flags) {
    return (int)syscall(SYS_accept4, listener, address, bytes, flags);
}

// Says which file an open one is: its inode, and when that was made in nanoseconds since 1970, or 0
// where the file system does not tell (statx(2)). 0, or -1 with errno.
static inline int gateway_file_identity(
    int descriptor, unsigned long long *inode, long long *born) {
    struct statx state = {0};
    // 0x1000 is AT_EMPTY_PATH.
    if (syscall(SYS_statx, descriptor, "", 0x1000, STATX_INO | STATX_BTIME, &state) < 0) return -1;
    *inode = state.stx_ino;
    *born = (state.stx_mask & STATX_BTIME)
        ? state.stx_btime.tv_sec * 1000000000LL + state.stx_btime.tv_nsec : 0;
    return 0;
}

// CPU time of the calling thread, in nanoseconds.
static inline long long gateway_thread_cpu_nanoseconds(void) {
    struct timespec time = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// Sets the nice value of the calling thread alone, as Linux does for a thread's own number
// (setpriority(2), NOTES). 0, or -1 with errno.
static inline int gateway_set_thread_niceness(int niceness) {
    return setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), niceness);
}

// Keeps the memory of the process from core files, and from other processes without CAP_SYS_PTRACE
// (PR_SET_DUMPABLE in prctl(2), which is variadic). 0, or -1 with errno.
static inline int gateway_forbid_dumps(void) {
    const struct rlimit none = {0, 0};
    return setrlimit(RLIMIT_CORE, &none) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : -1;
}

// Names the calling thread, by the first 15 bytes of `name` (prctl(2)), which is variadic.
static inline void gateway_name_thread(const char *name) { prctl(PR_SET_NAME, name); }

// Whether the kernel says that something keeps its clock right (adjtimex(2)): 1 or 0, and -1 when it
// does not say.
static inline int gateway_clock_is_synchronised(void) {
    struct timex state = {0};
    if (adjtimex(&state) < 0) return -1;
    return (state.status & STA_UNSYNC) ? 0 : 1;
}

#endif
