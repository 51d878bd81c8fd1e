#pragma once
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* The union in epoll_event has no member that Swift sets without a detour. */
static inline int postern_epoll_add(int epoll, int descriptor, uint32_t index) {
    struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = index}};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}
