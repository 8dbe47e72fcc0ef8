/* SPDX-License-Identifier: Apache-2.0
 *
 * Posts of the simulated journal: those under way, and what has arrived: messages in a list, dead
 * letters one a subject. What arrived outlives the sender. */
#ifndef PW_SIM_MAIL_H
#define PW_SIM_MAIL_H

#include "core/journal.h"

struct pw_sim_post {
    struct pw_post post; /* what it points to is in `bytes` */
    char bytes[];
};

struct pw_sim_posts {
    struct pw_sim_post **items;
    size_t count;
    size_t room;
};

struct pw_sim_sent;

/* Zeroed is empty. Freed by pw_sim_mail_clear. */
struct pw_sim_mail {
    struct pw_sim_sent *sent; /* under way, in the order of sending */
    size_t sent_count;
    size_t sent_room;
    size_t waiting; /* those of them that are unanswered, and asked for */
    bool failed;    /* one of them; the journal asks and clears it */
    struct pw_sim_posts events;
    struct pw_sim_posts letters;
};

/* Copies the post. It arrives at arrive_ms (PW_NEVER: it is lost); at answer_ms its sender has an
 * answer, or, when that is lost, gives up. PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_sim_mail_send(struct pw_sim_mail *mail, const struct pw_post *post,
                                        uint64_t arrive_ms, uint64_t answer_ms, bool answered);

/* Whatever has happened by now. True: an answer came, or failed to come. When one fails, the sender
 * waits for none of the others any more. */
bool pw_sim_mail_settle(struct pw_sim_mail *mail, uint64_t now_ms);

/* The sender is gone: it waits for none. */
void pw_sim_mail_forget(struct pw_sim_mail *mail);

/* When something happens next. */
uint64_t pw_sim_mail_next_ms(const struct pw_sim_mail *mail);

void pw_sim_mail_clear(struct pw_sim_mail *mail);

#endif
