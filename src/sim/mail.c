/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of copied posts. Room in the list in which a post will end is made when it is sent, so that
 * arriving cannot fail. */
#include <assert.h>

#include "base/base.h"
#include "base/clock.h"
#include "sim/copy.h"
#include "sim/mail.h"

#define POSTS_FIRST 16u

struct pw_sim_sent {
    struct pw_sim_post *post; /* NULL: it has arrived, or is lost */
    uint64_t arrive_ms;
    uint64_t answer_ms;
    bool answered;  /* at answer_ms; else its sender gives up then */
    bool forgotten; /* nobody waits for its answer */
};

static struct pw_sim_post *copy_of(const struct pw_post *post)
{
    size_t texts = pw_sim_text_size(post->machine) + pw_sim_text_size(post->id) +
                   pw_sim_text_size(post->name) + pw_sim_text_size(post->trace) +
                   pw_sim_text_size(post->why);
    struct pw_sim_post *copy = pw_alloc(sizeof(*copy) + texts + post->data.size);
    if (copy == NULL)
        return NULL;
    char *at = copy->bytes;
    copy->post = *post;
    copy->post.machine = pw_sim_text_keep(&at, post->machine);
    copy->post.id = pw_sim_text_keep(&at, post->id);
    copy->post.name = pw_sim_text_keep(&at, post->name);
    copy->post.trace = pw_sim_text_keep(&at, post->trace);
    copy->post.why = pw_sim_text_keep(&at, post->why);
    copy->post.data.data = at;
    if (post->data.size > 0)
        memcpy(at, post->data.data, post->data.size);
    return copy;
}

/* --- room --------------------------------------------------------------------------------- */

static bool reserve(void **array, size_t *room, size_t count, size_t size)
{
    size_t more = *room > 0 ? *room : POSTS_FIRST;
    while (more < count)
        more *= 2;
    if (more == *room)
        return true;
    void *grown = pw_realloc(*array, more * size);
    if (grown == NULL)
        return false;
    *array = grown;
    *room = more;
    return true;
}

static bool reserve_posts(struct pw_sim_posts *posts, size_t more)
{
    void *array = posts->items;
    bool done = reserve(&array, &posts->room, posts->count + more, sizeof(struct pw_sim_post *));
    posts->items = array;
    return done;
}

static bool reserve_sent(struct pw_sim_mail *mail)
{
    void *array = mail->sent;
    bool done = reserve(&array, &mail->sent_room, mail->sent_count + 1, sizeof(struct pw_sim_sent));
    mail->sent = array;
    return done;
}

static void push(struct pw_sim_posts *posts, struct pw_sim_post *post)
{
    assert(posts->count < posts->room);
    posts->items[posts->count++] = post;
}

static void clear_posts(struct pw_sim_posts *posts)
{
    for (size_t i = 0; i < posts->count; i++)
        pw_free(posts->items[i]);
    pw_free(posts->items);
    *posts = (struct pw_sim_posts){ .count = 0 };
}

/* --- arriving ----------------------------------------------------------------------------- */

/* A visit's own letter has n 0, whatever its lsn; one of an effect is named by the effect. */
static bool same_subject(const struct pw_post *a, const struct pw_post *b)
{
    return strcmp(a->machine, b->machine) == 0 && strcmp(a->id, b->id) == 0 &&
           a->epoch == b->epoch && a->n == b->n && (a->n == 0 || a->lsn == b->lsn);
}

static void remove_letter(struct pw_sim_posts *letters, const struct pw_post *post)
{
    for (size_t i = 0; i < letters->count; i++) {
        struct pw_sim_post **at = &letters->items[i];
        if (!same_subject(&(*at)->post, post))
            continue;
        pw_free(*at);
        letters->count--;
        memmove(at, at + 1, (letters->count - i) * sizeof(struct pw_sim_post *));
        return;
    }
}

static void arrive(struct pw_sim_mail *mail, struct pw_sim_sent *sent)
{
    struct pw_sim_post *post = sent->post;
    sent->post = NULL;
    if (post->post.kind == PW_POST_EVENT) {
        push(&mail->events, post);
        return;
    }
    remove_letter(&mail->letters, &post->post);
    if (post->post.kind == PW_POST_LETTER)
        push(&mail->letters, post);
    else
        pw_free(post);
}

static void drop_done(struct pw_sim_mail *mail)
{
    size_t kept = 0;
    for (size_t i = 0; i < mail->sent_count; i++)
        if (mail->sent[i].post != NULL || !mail->sent[i].forgotten)
            mail->sent[kept++] = mail->sent[i];
    mail->sent_count = kept;
}

/* Not before those that were sent before it. */
static uint64_t in_order(const struct pw_sim_mail *mail, uint64_t arrive_ms)
{
    for (size_t i = 0; i < mail->sent_count; i++)
        if (mail->sent[i].post != NULL && mail->sent[i].arrive_ms > arrive_ms)
            arrive_ms = mail->sent[i].arrive_ms;
    return arrive_ms;
}

/* --- the whole ---------------------------------------------------------------------------- */

pawl_err pw_sim_mail_send(struct pw_sim_mail *mail, const struct pw_post *post, uint64_t arrive_ms,
                          uint64_t answer_ms, bool answered)
{
    bool lost = arrive_ms == PW_NEVER;
    size_t most = mail->sent_count + 1;
    if (!reserve_sent(mail) || !reserve_posts(&mail->events, most) ||
        !reserve_posts(&mail->letters, most))
        return PAWL_E_NOMEM;
    struct pw_sim_post *copy = lost ? NULL : copy_of(post);
    if (copy == NULL && !lost)
        return PAWL_E_NOMEM;
    if (!lost)
        arrive_ms = in_order(mail, arrive_ms);
    if (answer_ms <= arrive_ms && !lost)
        answer_ms = arrive_ms + 1;
    mail->sent[mail->sent_count++] = (struct pw_sim_sent){
        .post = copy, .arrive_ms = arrive_ms, .answer_ms = answer_ms, .answered = answered
    };
    mail->waiting++;
    return PAWL_OK;
}

bool pw_sim_mail_settle(struct pw_sim_mail *mail, uint64_t now_ms)
{
    bool news = false;
    bool failed = false;
    for (size_t i = 0; i < mail->sent_count; i++) {
        struct pw_sim_sent *sent = &mail->sent[i];
        if (sent->post != NULL && sent->arrive_ms <= now_ms)
            arrive(mail, sent);
        if (sent->forgotten || sent->answer_ms > now_ms)
            continue;
        sent->forgotten = true;
        mail->waiting--;
        news = true;
        failed = failed || !sent->answered;
    }
    if (failed) {
        pw_sim_mail_forget(mail);
        mail->failed = true;
    }
    drop_done(mail);
    return news;
}

void pw_sim_mail_forget(struct pw_sim_mail *mail)
{
    for (size_t i = 0; i < mail->sent_count; i++)
        mail->sent[i].forgotten = true;
    mail->waiting = 0;
    mail->failed = false;
    drop_done(mail);
}

uint64_t pw_sim_mail_next_ms(const struct pw_sim_mail *mail)
{
    uint64_t next_ms = PW_NEVER;
    for (size_t i = 0; i < mail->sent_count; i++) {
        const struct pw_sim_sent *sent = &mail->sent[i];
        if (sent->post != NULL && sent->arrive_ms < next_ms)
            next_ms = sent->arrive_ms;
        if (!sent->forgotten && sent->answer_ms < next_ms)
            next_ms = sent->answer_ms;
    }
    return next_ms;
}

void pw_sim_mail_clear(struct pw_sim_mail *mail)
{
    for (size_t i = 0; i < mail->sent_count; i++)
        pw_free(mail->sent[i].post);
    pw_free(mail->sent);
    clear_posts(&mail->events);
    clear_posts(&mail->letters);
    *mail = (struct pw_sim_mail){ .sent_count = 0 };
}
