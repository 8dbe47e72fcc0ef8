/* SPDX-License-Identifier: Apache-2.0
 *
 * A seed is base32 of two bytes of kind, 32 of the seed and a checksum; a public key, of one byte
 * of kind, 32 of the key and a checksum. */
#include <openssl/evp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "jetstream/nkey.h"

#define KEY_SIZE 32
#define SEED_BYTES (2 + KEY_SIZE + 2)
#define PUBLIC_BYTES (1 + KEY_SIZE + 2)
#define KIND_SEED (18u << 3) /* 'S' */
#define KIND_USER (20u << 3) /* 'U' */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/* Five bits a letter, the first the highest; the last letter's spare bits are 0. */
static bool decode(const char *text, uint8_t *to, size_t size)
{
    uint32_t bits = 0;
    unsigned held = 0;
    size_t used = 0;
    for (; *text != '\0'; text++) {
        const char *letter = strchr(alphabet, *text);
        if (letter == NULL || used == size)
            return false;
        bits = (bits << 5 | (uint32_t)(letter - alphabet)) & 0xfff;
        held += 5;
        if (held >= 8) {
            held -= 8;
            to[used++] = (uint8_t)(bits >> held);
        }
    }
    return used == size && (bits & ((1u << held) - 1)) == 0;
}

static void encode(const uint8_t *bytes, size_t size, char *to)
{
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < size; i++) {
        bits = (bits << 8 | bytes[i]) & 0xfff;
        for (held += 8; held >= 5; held -= 5)
            *to++ = alphabet[bits >> (held - 5) & 31];
    }
    if (held > 0)
        *to++ = alphabet[bits << (5 - held) & 31];
    *to = '\0';
}

/* CRC-16/XMODEM. */
static uint16_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < size; i++) {
        crc ^= (uint32_t)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021 : 0)) & 0xffff;
    }
    return (uint16_t)crc;
}

static bool derive(const uint8_t *seed, uint8_t *to)
{
    size_t size = KEY_SIZE;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, KEY_SIZE);
    bool derived = key != NULL && EVP_PKEY_get_raw_public_key(key, to, &size) == 1;
    EVP_PKEY_free(key);
    return derived && size == KEY_SIZE;
}

bool pw_nkey_public(const char *seed, char to[PW_NKEY_PUBLIC_SIZE])
{
    uint8_t bytes[SEED_BYTES] = { 0 };
    uint8_t key[PUBLIC_BYTES] = { KIND_USER };
    if (strnlen(seed, PW_NKEY_SEED_SIZE) != PW_NKEY_SEED_SIZE - 1 ||
        !decode(seed, bytes, sizeof(bytes)))
        return false;
    uint16_t sum = checksum(bytes, SEED_BYTES - 2);
    bool whole = bytes[SEED_BYTES - 2] == (sum & 0xff) && bytes[SEED_BYTES - 1] == sum >> 8;
    bool of_user = (bytes[0] & 0xf8) == KIND_SEED &&
                   ((bytes[0] & 7u) << 5 | (bytes[1] & 0xf8u) >> 3) == KIND_USER;
    if (!whole || !of_user || !derive(bytes + 2, key + 1))
        return false;
    sum = checksum(key, PUBLIC_BYTES - 2);
    key[PUBLIC_BYTES - 2] = (uint8_t)(sum & 0xff);
    key[PUBLIC_BYTES - 1] = (uint8_t)(sum >> 8);
    encode(key, sizeof(key), to);
    return true;
}
