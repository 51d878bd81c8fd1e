#pragma once
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* The union in epoll_event has no member that Swift sets without a detour. */
static inline int postern_epoll(int epoll, int operation, int descriptor, uint32_t events, uint64_t id) {
    struct epoll_event event = {.events = events, .data = {.u64 = id}};
    return epoll_ctl(epoll, operation, descriptor, &event);
}
