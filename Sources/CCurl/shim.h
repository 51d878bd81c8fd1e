#pragma once
#include <curl/curl.h>
#include <signal.h>
#include <sys/socket.h>

/* curl_easy_setopt and curl_easy_getinfo are variadic, which Swift does not import; one typed function per kind of
   argument. */
static inline CURLcode postern_curl_set_long(CURL *curl, CURLoption option, long value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLMcode postern_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
static inline CURLcode postern_curl_set_string(CURL *curl, CURLoption option, const char *value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLcode postern_curl_set_list(CURL *curl, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLcode postern_curl_set_pointer(CURL *curl, CURLoption option, void *value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLcode postern_curl_set_read(CURL *curl, curl_read_callback value) {
    return curl_easy_setopt(curl, CURLOPT_READFUNCTION, value);
}
static inline CURLcode postern_curl_set_seek(CURL *curl, curl_seek_callback value) {
    return curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, value);
}
static inline CURLcode postern_curl_set_write(CURL *curl, curl_write_callback value) {
    return curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, value);
}
static inline CURLcode postern_curl_set_progress(CURL *curl, curl_xferinfo_callback value) {
    return curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, value);
}
static inline CURLcode postern_curl_set_debug(CURL *curl, curl_debug_callback value) {
    return curl_easy_setopt(curl, CURLOPT_DEBUGFUNCTION, value);
}
static inline CURLcode postern_curl_set_open_socket(CURL *curl, curl_opensocket_callback value) {
    return curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, value);
}
static inline CURLcode postern_curl_get_long(CURL *curl, CURLINFO info, long *value) {
    return curl_easy_getinfo(curl, info, value);
}
static inline CURLcode postern_curl_get_offset(CURL *curl, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(curl, info, value);
}

/* Child processes do not inherit the connections: an inherited connection stays open after libcurl closes it. */
static inline curl_socket_t postern_curl_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)context;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}
static inline CURLcode postern_curl_keep_from_children(CURL *curl) {
    return curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, postern_curl_open_socket);
}

/* curl_global_init with its macro of flags. A peer that resets the connection must not end the process: libcurl leaves
   SIGPIPE alone when it is told to use no signals, which threads require. */
static inline CURLcode postern_curl_start(void) {
    struct sigaction current;
    if (sigaction(SIGPIPE, 0, &current) == 0 && current.sa_handler == SIG_DFL) {
        signal(SIGPIPE, SIG_IGN);
    }
    return curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Shuts the reading side of the connection kept by a handle, or both sides: closing the handle then says QUIT without
   waiting for the answer, or says nothing. */
static inline void postern_curl_shut(CURL *curl, int both) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    if (curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK && socket != CURL_SOCKET_BAD) {
        shutdown(socket, both ? SHUT_RDWR : SHUT_RD);
    }
}
