#ifndef POSTERN_PHONE_NUMBER_H
#define POSTERN_PHONE_NUMBER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What libphonenumber makes of a text. Both strings end in NUL.
struct phone_number {
    /// E.164.
    char e164[20];
    /// ISO 3166 code of the number's country; of its calling code's main one where the number tells none; 001 for a
    /// number of no country.
    char region[4];
};

/// Reads a phone number as people write it. Thread-safe. The first call loads the tables, some 10 ms.
///
/// - text: UTF-8, `length` bytes.
/// - default_region: ISO 3166 code of numbers without a country code; NULL: there is none.
/// - Returns: 1, or 0 when the text is no number that a message can be sent to: not parsable, with an extension, too
///   short, local only, of a length between two possible ones, premium, shared-cost, toll-free, personal, pager or
///   voicemail.
int phone_number_read(const char *text, size_t length, const char *default_region, struct phone_number *number);

#ifdef __cplusplus
}
#endif
#endif
