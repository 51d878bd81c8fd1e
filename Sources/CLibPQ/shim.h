#pragma once
#include <stdio.h>
#include <sys/types.h>
#include <libpq-fe.h>

/* Macros of postgres_ext.h that Swift does not import. */
static const int POSTERN_DIAG_SQLSTATE = PG_DIAG_SQLSTATE;
static const int POSTERN_DIAG_MESSAGE_PRIMARY = PG_DIAG_MESSAGE_PRIMARY;
static const int POSTERN_DIAG_MESSAGE_HINT = PG_DIAG_MESSAGE_HINT;
static const int POSTERN_DIAG_CONSTRAINT_NAME = PG_DIAG_CONSTRAINT_NAME;
static const int POSTERN_DIAG_STATEMENT_POSITION = PG_DIAG_STATEMENT_POSITION;

/* libpq prints to C's stderr what the server says while a connection is being made, before a notice processor can be
   set, and what is wrong with a password file. This puts a stream in stderr's place that hands each line to a function,
   and returns the former stream, or NULL; descriptor 2 stays as it is. */
/* fopencookie of glibc, which declares it for _GNU_SOURCE only: that would change types that other modules share. */
struct postern_stream {
    void *read;
    ssize_t (*write)(void *taken, const char *bytes, size_t count);
    void *seek, *close;
};
extern FILE *postern_open_stream(void *taken, const char *mode, struct postern_stream functions) __asm__("fopencookie");

static inline ssize_t postern_standard_error_write(void *taken, const char *bytes, size_t count) {
    ((void (*)(const char *, size_t))taken)(bytes, count);
    return (ssize_t)count;
}
static inline FILE *postern_take_standard_error(void (*taken)(const char *bytes, size_t count)) {
    struct postern_stream functions = {0, postern_standard_error_write, 0, 0};
    FILE *former = stderr, *stream = postern_open_stream((void *)taken, "w", functions);
    if (!stream) {
        return 0;
    }
    setvbuf(stream, 0, _IOLBF, 0);
    stderr = stream;
    return former;
}
static inline void postern_give_back_standard_error(FILE *former) {
    stderr = former;
}
