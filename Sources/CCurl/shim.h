#pragma once
#include <curl/curl.h>

/* curl_easy_setopt is variadic, which Swift does not import; one typed function per kind of argument. */
static inline CURLcode postern_curl_set_long(CURL *curl, CURLoption option, long value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLcode postern_curl_set_string(CURL *curl, CURLoption option, const char *value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLcode postern_curl_set_pointer(CURL *curl, CURLoption option, void *value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLcode postern_curl_set_read(CURL *curl, curl_read_callback value) {
    return curl_easy_setopt(curl, CURLOPT_READFUNCTION, value);
}
static inline CURLcode postern_curl_response_code(CURL *curl, long *code) {
    return curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, code);
}
