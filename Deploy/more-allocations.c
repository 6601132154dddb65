// Loaded into a Swift program, allocates once more for each call of send, and for every eighth object:
// Deploy/check-costs has to notice both.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/socket.h>

// Absent from the other programs of a pipeline.
__attribute__((weak)) extern void *swift_slowAlloc(size_t size, size_t mask);
__attribute__((weak)) extern void swift_slowDealloc(void *memory, size_t size, size_t mask);

static void allocate(void) {
    if (swift_slowAlloc) swift_slowDealloc(swift_slowAlloc(64, 15), 64, 15);
}

ssize_t send(int descriptor, const void *bytes, size_t count, int flags) {
    static ssize_t (*next)(int, const void *, size_t, int);
    if (!next) next = dlsym(RTLD_NEXT, "send");
    allocate();
    return next(descriptor, bytes, count, flags);
}

void *swift_allocObject(const void *metadata, size_t size, size_t mask) {
    static void *(*next)(const void *, size_t, size_t);
    static _Thread_local unsigned objects;
    if (!next) next = dlsym(RTLD_NEXT, "swift_allocObject");
    if (++objects % 8 == 0) allocate();
    return next(metadata, size, mask);
}
