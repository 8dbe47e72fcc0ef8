/* SPDX-License-Identifier: Apache-2.0
 *
 * See gateway.h. */
#include "examples/gateway.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An order's data, taken apart. */
struct script {
    char amount[16];
    char word[16];
    unsigned long number;
};

static bool parse(const struct gateway_request *request, struct script *script)
{
    char text[64] = "";
    char number[8] = "0";

    if (request->order.size == 0 || request->order.size >= sizeof(text))
        return false;
    memcpy(text, request->order.data, request->order.size);
    *script = (struct script){ .number = 0 };
    int fields = sscanf(text, "%15[0-9.] %15[a-z] %7[0-9]", script->amount, script->word, number);
    script->number = strtoul(number, NULL, 10); /* digits only, and few: cannot fail */
    return fields >= 1;
}

static bool is(const struct script *script, const char *word)
{
    return strcmp(script->word, word) == 0;
}

static void pass(unsigned long ms)
{
    const struct timespec time = { .tv_sec = (time_t)(ms / 1000),
                                   .tv_nsec = (long)(ms % 1000) * 1000000 };
    (void)nanosleep(&time, NULL); /* a signal may shorten it: no harm */
}

static enum gateway_answer charge(const struct gateway_request *request)
{
    struct script script;

    if (!parse(request, &script))
        return GATEWAY_REFUSED;
    if (is(&script, "busy"))
        return request->attempt <= script.number ? GATEWAY_BUSY : GATEWAY_OK;
    if (is(&script, "slow"))
        pass(script.number);
    return is(&script, "declined") ? GATEWAY_DECLINED : GATEWAY_OK;
}

static enum gateway_answer refund(const struct gateway_request *request)
{
    struct script script;

    return parse(request, &script) && !is(&script, "kept") ? GATEWAY_OK : GATEWAY_REFUSED;
}

static enum gateway_answer told(const char *what, const struct gateway_request *request,
                                enum gateway_answer answer)
{
    static const char *const answers[] = {
        [GATEWAY_OK] = "done",
        [GATEWAY_BUSY] = "busy",
        [GATEWAY_DECLINED] = "declined",
        [GATEWAY_REFUSED] = "refused",
    };

    (void)fprintf(stderr, "gateway: %s key=%s attempt=%" PRIu32 " receipt=%.*s: %s\n", what,
                  request->key, request->attempt, (int)request->receipt.size,
                  (const char *)request->receipt.data, answers[answer]);
    return answer;
}

void gateway_receipt(struct gateway *gateway, char receipt[GATEWAY_RECEIPT_MAX])
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail: the clock exists */
    unsigned number = atomic_fetch_add(&gateway->receipts, 1);
    (void)snprintf(receipt, GATEWAY_RECEIPT_MAX, "R%lld.%09ld-%u", (long long)now.tv_sec,
                   now.tv_nsec, number);
}

enum gateway_answer gateway_charge(const struct gateway_request *request)
{
    return told("charge", request, charge(request));
}

enum gateway_answer gateway_refund(const struct gateway_request *request)
{
    return told("refund", request, refund(request));
}
