/* SPDX-License-Identifier: Apache-2.0
 *
 * A payment gateway that does as it is told. The order's data is an amount, and may go on with what
 * the gateway shall do:
 *
 *     19.90                takes the money
 *     19.90 busy 2         is busy for the first 2 attempts
 *     19.90 slow 3000      takes the money, and 3000 ms
 *     19.90 declined       does not take the money
 *     19.90 kept           takes the money, and does not give it back
 *     anything else        cannot make sense of it
 *
 * Like a real one it blocks its caller, is called by many threads at once, and takes a key by which
 * it knows a repeated call. It tells what it does on standard error. */
#ifndef EXAMPLES_GATEWAY_H
#define EXAMPLES_GATEWAY_H

#include <stdatomic.h>
#include <stdint.h>

#include "pawl/machine.h"

enum gateway_answer {
    GATEWAY_OK,
    GATEWAY_BUSY,     /* another attempt may help */
    GATEWAY_DECLINED, /* the payer's bank says no */
    GATEWAY_REFUSED,  /* no attempt will help */
};

struct gateway {
    atomic_uint receipts;
};

struct gateway_request {
    const char *key;  /* the same for every attempt at the same thing */
    uint32_t attempt; /* the script asks for it; a real gateway would not */
    pawl_bytes order;
    pawl_bytes receipt;
};

#define GATEWAY_RECEIPT_MAX 48

/* A number that no other receipt has. Never the same twice. */
void gateway_receipt(struct gateway *gateway, char receipt[GATEWAY_RECEIPT_MAX]);

enum gateway_answer gateway_charge(const struct gateway_request *request);
enum gateway_answer gateway_refund(const struct gateway_request *request);

#endif
