/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as text: base64 (RFC 4648), what a person can read, times. Pure. */
#ifndef PW_TEXT_H
#define PW_TEXT_H

#include "base/base.h"

/* Bytes of text that `size` bytes become, without a final '\0'. */
#define PW_BASE64_SIZE(size) (((size) + 2) / 3 * 4)

/* to: PW_BASE64_SIZE(bytes.size) + 1 bytes. */
void pw_base64_encode(pawl_bytes bytes, char *to);

/* Strict: padded, no blanks. to: at least size / 4 * 3 bytes. False: malformed. */
bool pw_base64_decode(const char *text, size_t size, uint8_t *to, size_t *decoded);

/* True when it is UTF-8 that can be printed as it is: no control characters but tab, newline and
 * carriage return. */
bool pw_is_printable(pawl_bytes bytes);

/* "2026-12-01T02:00:00.123Z"; "-" for 0. */
#define PW_TIME_TEXT_SIZE 40
void pw_print_time(uint64_t ms, char to[PW_TIME_TEXT_SIZE]);

#endif
