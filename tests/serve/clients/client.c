/* A client of `readcache serve` without a library, and its driver: see readcache/testing/clients.py. It knows as much of
 * JSON as it takes to find the fields of an answer. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_STARTS = 3, ASIDE = 30000 };

static struct {
    char **words;
    long deadline, late_since; /* milliseconds; 0: it is not late */
    pid_t pid;                 /* 0: none is running */
    int to, from, starts;
    unsigned long last; /* id */
    char *heard;
    size_t length, room;
} server;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000 + 1;
}

static void end(void) {
    server.late_since = 0;
    if (!server.pid) return;
    kill(server.pid, SIGKILL);
    waitpid(server.pid, NULL, 0);
    close(server.to);
    close(server.from);
    server.pid = 0, server.length = 0;
}

static int start(void) {
    int in[2], out[2];
    if (++server.starts > MOST_STARTS || pipe(in)) return 0;
    if (pipe(out)) return close(in[0]), close(in[1]), 0;
    for (int k = 0; k < 2; k++) fcntl(in[k], F_SETFD, FD_CLOEXEC), fcntl(out[k], F_SETFD, FD_CLOEXEC);
    server.pid = fork();
    if (!server.pid) {
        dup2(in[0], 0), dup2(out[1], 1);
        execvp(server.words[0], server.words);
        _exit(127);
    }
    close(in[0]), close(out[1]);
    server.to = in[1], server.from = out[0];
    fcntl(server.to, F_SETFL, O_NONBLOCK), fcntl(server.from, F_SETFL, O_NONBLOCK);
    if (server.pid > 0) return 1;
    server.pid = 0;
    return close(server.to), close(server.from), 0;
}

static const char *blank(const char *s) { return s + strspn(s, " \t\r"); }

/* The end of the value at `s`; NULL if there is none. */
static const char *past(const char *s) {
    int depth = 0;
    do {
        if (*s == '"') {
            for (s++; *s && *s != '"'; s++)
                if (*s == '\\' && s[1]) s++;
            if (!*s++) return NULL;
        } else if (*s == '{' || *s == '[') {
            depth++, s++;
        } else if (*s == '}' || *s == ']') {
            depth--, s++;
        } else if (*s && depth && strchr(" ,:\t\r", *s)) {
            s++;
        } else {
            size_t n = strcspn(s, " ,:{}[]\"\t\r");
            if (!n) return NULL;
            s += n;
        }
    } while (depth > 0);
    return depth ? NULL : s;
}

/* A line of the server's. 1: the answer to `id`, printed; 0: an answer to another request; -1: nonsense. */
static int hear(char *line, unsigned long id) {
    const char *found[3] = {0}, *ends[3] = {0}, *names[] = {"\"id\"", "\"result\"", "\"error\""}, *s = blank(line);
    if (*s != '{') return -1;
    for (s = blank(s + 1); *s == '"';) {
        const char *name = s, *stop;
        if (!(s = past(s))) return -1;
        stop = s, s = blank(s);
        if (*s != ':') return -1;
        const char *value = blank(s + 1);
        if (!(s = past(value))) return -1;
        for (int k = 0; k < 3; k++)
            if ((size_t)(stop - name) == strlen(names[k]) && !memcmp(name, names[k], stop - name))
                found[k] = value, ends[k] = s;
        s = blank(s);
        if (*s == ',') s = blank(s + 1);
    }
    if (*s != '}' || !(found[1] || found[2])) return -1;
    server.late_since = 0;
    if (!found[0] || strtoul(found[0], NULL, 10) != id) return 0;
    int k = found[1] ? 1 : 2;
    printf("{%s: %.*s}\n", names[k], (int)(ends[k] - found[k]), found[k]);
    return 1;
}

/* Writes what is left of the request, and reads; 1: answered, 0: not yet, -1: it is no use any more. */
static int exchange(const char **request, size_t *left, unsigned long id, long wait) {
    struct pollfd polled[2] = {{server.from, POLLIN, 0}, {*left ? server.to : -1, POLLOUT, 0}};
    if (poll(polled, 2, (int)wait) < 0) return errno == EINTR ? 0 : -1;
    if (polled[1].revents) {
        ssize_t n = write(server.to, *request, *left);
        if (n < 0 && errno != EAGAIN) return -1;
        if (n > 0) *request += n, *left -= (size_t)n;
    }
    if (!polled[0].revents) return 0;
    if (server.room - server.length < 65536 && !(server.heard = realloc(server.heard, server.room += server.room + 65536)))
        exit(1);
    ssize_t n = read(server.from, server.heard + server.length, server.room - server.length);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) return -1;
    server.length += (size_t)n;
    for (char *stop; (stop = memchr(server.heard, '\n', server.length));) {
        *stop = 0;
        int said = hear(server.heard, id);
        server.length -= (size_t)(stop + 1 - server.heard);
        memmove(server.heard, stop + 1, server.length);
        if (said) return said;
    }
    return 0;
}

/* Asks, and prints the answer; 0: the real output is to be shown. `rest`: the request behind its first brace. */
static int ask(const char *rest) {
    static char *line;
    unsigned long id = ++server.last;
    const char *request = "";
    size_t left = 0;
    if (server.late_since) /* did it answer meanwhile? */
        while (server.pid && server.late_since) {
            long before = (long)server.length;
            if (exchange(&request, &left, 0, 0) < 0) end();
            else if (before == (long)server.length) break;
        }
    if (server.late_since && now() - server.late_since >= ASIDE) end();
    if (server.late_since || (!server.pid && !start())) return 0;
    if (!(line = realloc(line, strlen(rest) + 64))) exit(1);
    left = (size_t)sprintf(line, "{\"jsonrpc\": \"2.0\", \"id\": %lu, %s\n", id, rest);
    request = line;
    for (long until = now() + server.deadline, rests; (rests = until - now()) > 0;) {
        int said = exchange(&request, &left, id, rests);
        if (said > 0) return 1;
        if (said < 0) return end(), 0;
    }
    if (left) end(); /* a line that stops in the middle: the server could not make sense of the next one */
    server.late_since = now();
    return 0;
}

int main(int count, char **words) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    if (count < 3) return 2;
    signal(SIGPIPE, SIG_IGN);
    server.deadline = atol(words[1]), server.words = words + 2;
    while ((length = getline(&line, &room, stdin)) > 0) {
        if (line[length - 1] == '\n') line[length - 1] = 0;
        if (!ask(line + 1)) puts("{\"error\": \"show the real output\"}");
        fflush(stdout);
    }
    end();
    return 0;
}
