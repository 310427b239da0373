/* run_state.c: see run_state.h. */
#include "store/run_state.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool is_here(const struct td_run_facts *facts)
{
    char host[sizeof facts->host] = "";
    (void)gethostname(host, sizeof host - 1);
    return !*facts->host || strcmp(host, facts->host) == 0 || strcmp(facts->host, "localhost") == 0;
}

static bool is_gone(int64_t pid)
{
    return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

const char *td_run_state(const struct td_run_facts *facts)
{
    if (facts->ended_ns > 0)
        return "ended";
    return is_here(facts) && is_gone(facts->pid) ? "broken off" : "running";
}

bool td_run_is_others(const struct td_run_facts *facts)
{
    return facts->ended_ns == 0 && facts->pid > 0 && facts->pid != getpid() && is_here(facts) &&
           !is_gone(facts->pid);
}
