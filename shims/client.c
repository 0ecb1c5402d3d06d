/* The short way: a call is told to a server that runs already (docs/protocol.md), and what it leaves of the
 * program's output is printed. The program has the streams, signals and status that it has without us. Whatever is in
 * doubt, too slow or not there, all of the output is printed: no byte of it waits for the server longer than PATIENCE_MS.
 * Paths and environment are the agent's; nothing is run but the program, and only a socket is trusted that lies in a
 * directory where nobody but its owner can put one, and at which that owner listens. */
#include "shim.h"

#ifndef PATIENCE_MS
#define PATIENCE_MS 50 /* in all; a judgement takes one or two, and a machine under load ten */
#endif
#ifndef HELD_SECONDS
#define HELD_SECONDS 20
#endif
#define AWAKE_NS 200000 /* most answers come sooner, and to sleep until then would cost as much as they take */
#define HOOK_SOON_MS 500 /* until a hook's call is taken, and until it is answered, as in readcache/serve/ask.py */
#define HOOK_PATIENCE_MS 2500
#define ASIDE 30 /* seconds, as in readcache/serve/address.py */
#ifndef VERSION
#define VERSION "" /* of the package; no server has this one */
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

enum {
  ROOM_HEAD = 4 << 20,                  /* bytes; the server takes no longer head */
  MOST_HELD = 8000000, LONGEST_HELD = HELD_SECONDS, /* bytes and seconds, as in readcache/core/model/limits.py and process/child.py */
  ROOM_OUTPUT = MOST_HELD + (1 << 17),
};
enum { ALRM = 14, TERM = 15, INT = 2, HUP = 1, QUIT = 3, USR1 = 10, USR2 = 12, PIPE = 13, XFSZ = 25, CHLD = 17, KILL = 9 };
enum { EAGAIN_ = 11, EINTR_ = 4, ENOENT_ = 2, ENOTDIR_ = 20, E2BIG_ = 7, ENOEXEC_ = 8, PIPE_LOST = 32 };
enum { NO_FOLLOW = 0x100, EMPTY_PATH = 0x1000, IS_FILE = 0100000, IS_SOCKET = 0140000, PROCFS = 0x9fa0 };
enum { BESIDE = 2 }; /* of `find_server` */
enum { POLL_IN = 1, POLL_OUT = 4, PATH_ONLY = 010000000 /* O_PATH */ };
#ifdef __aarch64__
enum { DIRECTORY_ALONE = 040000, NO_LINK = 0100000 };
#else
enum { DIRECTORY_ALONE = 0200000, NO_LINK = 0400000 };
#endif

struct poll { int fd; short events, came; };
struct moment { long seconds, nanoseconds; };
struct facts { unsigned mask, block; unsigned long attributes; unsigned links, user, group; unsigned short mode, pad; long more[28]; };
struct action { void *handler; unsigned long flags; void *restorer; unsigned long mask; };

static char *head, *scratch, *held, *answer; /* ROOM_HEAD, ROOM_HEAD, ROOM_OUTPUT, ROOM_OUTPUT */
static char *end_of_head;
static long held_size, patience = PATIENCE_MS * 1000000L, mask_before, unwritten;
static int kept_signals = -1; /* a descriptor on which they come */
static struct action child_before;

static long now(int clock) {
  struct moment at;
  sys(SYS_clock_gettime, clock, (long)&at, 0, 0);
  return at.seconds * 1000000000 + at.nanoseconds;
}

static int facts_of(int directory, const char *path, int flags, struct facts *facts) {
  return !sys6(SYS_statx, directory, (long)path, flags, 0x7ff /* STATX_BASIC_STATS */, (long)facts, 0);
}

/* ------------------------------------------------------------ the server */

/* Waits for the socket while there is patience left; 0 when there is none, or somebody wants an end of this. */
static int is_ready(int fd, short events) {
  struct poll polls[2] = {{fd, events, 0}, {kept_signals, POLL_IN, 0}};
  struct moment left = {patience / 1000000000, patience % 1000000000};
  long began = now(1), got;
  if (patience <= 0) return 0;
  got = sys6(SYS_ppoll, (long)polls, 2, (long)&left, 0, 8, 0);
  patience = polls[1].came ? 0 : patience - (now(1) - began);
  return (got > 0 && polls[0].came) || (got == -EINTR_ && is_ready(fd, events));
}

static int send_bytes(int fd, const char *data, long size) {
  while (size > 0) {
    long sent = sys6(SYS_sendto, fd, (long)data, size, 0x4040 /* MSG_NOSIGNAL, MSG_DONTWAIT */, 0, 0);
    if (sent > 0) data += sent, size -= sent;
    else if (sent == -EINTR_) continue;
    else if (sent != -EAGAIN_ || !is_ready(fd, POLL_OUT)) return 0;
  }
  return 1;
}

static int receive_bytes(int fd, char *data, long size) {
  long awake_until = now(1) + AWAKE_NS;
  while (size > 0) {
    long got = sys6(SYS_recvfrom, fd, (long)data, size, 0x40 /* MSG_DONTWAIT */, 0, 0);
    if (got > 0) data += got, size -= got;
    else if (got == -EINTR_) continue;
    else if (got == -EAGAIN_ && now(1) < awake_until) sys(SYS_sched_yield, 0, 0, 0, 0);
    else if (got != -EAGAIN_ || !is_ready(fd, POLL_IN)) return 0;
  }
  return 1;
}

static int send_front(int fd, char letter, unsigned size) {
  char front[5] = {letter, (char)size, (char)(size >> 8), (char)(size >> 16), (char)(size >> 24)};
  return send_bytes(fd, front, 5);
}

/* A frame of one text: a time, a status or a cause. */
static int send_word(int fd, char letter, const char *word) {
  return send_front(fd, letter, length(word) + 1) && send_bytes(fd, word, length(word) + 1);
}

/* The letter of the next frame, which is put into `to`, and its size; 0 where none comes in time. */
static char receive_frame(int fd, char *to, long room, long *size) {
  unsigned char front[5];
  if (!receive_bytes(fd, (char *)front, 5)) return 0;
  *size = front[1] | front[2] << 8 | front[3] << 16 | (long)front[4] << 24;
  return *size < room && receive_bytes(fd, to, *size) ? (char)front[0] : 0;
}

/* Is the path absolute, and no other one means the same? */
static int is_plain_name(const char *path) {
  if (*path != '/') return 0;
  for (; *path; path++)
    if (*path == '/' && (!path[1] || path[1] == '/' || (path[1] == '.' && (!path[2] || path[2] == '/')) ||
                         (path[1] == '.' && path[2] == '.' && (!path[3] || path[3] == '/'))))
      return 0;
  return 1;
}

/* The user's state directory, as readcache/process/state.py has it, into `place`: its end; 0 where it cannot be told. */
static char *find_state(char **environment, char *place, char *limit) {
  const char *state = variable(environment, "XDG_STATE_HOME"), *home = variable(environment, "HOME");
  char *to = *state == '/' ? add(place, limit, state) : *home == '/' ? add(add(place, limit, home), limit, "/.local/state") : 0;
  to = add(to, limit, "/readcache");
  return to && is_plain_name(place) ? to : 0;
}

int is_switched_off(char **environment) {
  static char path[4096];
  return add(find_state(environment, path, path + sizeof path), path + sizeof path, "/off") &&
         !sys(SYS_faccessat, HERE, (long)path, 0, 0);
}

/* Where the server is: its directory into `place`, its name into `name`, the store into `store`. It is that of this user
 * and store, unless one listens beside this program, as for a sandbox: then BESIDE. 0 where that cannot be told here. */
static int find_server(char **environment, const char *directory, char *place, char *name, char *store) {
  const char *given = variable(environment, "READCACHE_STORE"), *digit = "0123456789abcdef";
  unsigned long hash = 0xcbf29ce484222325; /* FNV-1a, as in readcache/serve/address.py */
  char *to, *limit = place + 4096;
  struct facts beside;
  int at;
  to = add(place, limit, directory);
  if (add(to, limit, "/.socket") && facts_of(HERE, place, NO_FOLLOW, &beside)) {
    *to = *store = 0;
    return add(name, name + 64, ".socket") ? BESIDE : 0;
  }
  if (!(to = find_state(environment, place, limit))) return 0;
  if (after(given, "sqlite:///")) given = after(given, "sqlite:///");
  if (!(*given ? add(store, store + 4096, given) : add(add(store, store + 4096, place), store + 4096, "/readcache.db")) ||
      !is_plain_name(store))
    return 0;
  for (at = 0; store[at]; at++) hash = (hash ^ (unsigned char)store[at]) * 0x100000001b3;
  name = add(name, name + 40, VERSION "-");
  for (at = 60; name && at >= 0; at -= 4) *name++ = digit[hash >> at & 15];
  if (name) *name = 0;
  return name && add(to, limit, "/serve");
}

static char place[4096], name[64]; /* of the server: its directory and its name there */

/* The server hangs: has others do without it for a while, by the socket's time of access (address.py says why). */
static void leave_aside(void) {
  static char path[4096 + 64];
  struct moment times[2] = {{now(0) / 1000000000 + ASIDE, 0}, {0, 0x3ffffffe /* UTIME_OMIT */}};
  if (add(add(add(path, path + sizeof path, place), path + sizeof path, "/"), path + sizeof path, name))
    sys(SYS_utimensat, HERE, (long)path, (long)times, NO_FOLLOW);
}

static int is_left_aside(struct facts *socket) {
  long left = socket->more[4] /* stx_atime */ - now(0) / 1000000000;
  return left > 0 && left <= ASIDE;
}

/* A connection to the server that can be trusted. -1 where there is none, -2 where it has no time. */
static int reach_server(char **environment, const char *directory, char *store) {
  static struct { unsigned short family; char path[108]; } address = {1 /* AF_UNIX */, ""};
  struct { int process; unsigned user, group; } peer;
  struct facts folder, entry;
  long size = sizeof peer, got;
  int at, fd, found = find_server(environment, directory, place, name, store);
  char *to;
  if (!found) return -1;
  at = sys(SYS_openat, HERE, (long)place, PATH_ONLY | DIRECTORY_ALONE | NO_LINK | CLOSE_ON_EXEC, 0);
  if (at < 0) return -1;
  fd = sys(SYS_socket, 1, 1 | CLOSE_ON_EXEC | 04000 /* SOCK_STREAM, SOCK_NONBLOCK */, 0, 0);
  to = add(address.path, address.path + 108, "/proc/self/fd/"); /* by this, names may be as long as they like */
  to = add(add(add(to, address.path + 108, digits(at)), address.path + 108, "/"), address.path + 108, name);
  got = -1;
  if (fd >= 0 && to && facts_of(at, "", EMPTY_PATH, &folder) && facts_of(at, name, NO_FOLLOW, &entry) &&
      !(folder.mode & 022) && (entry.mode & 0170000) == IS_SOCKET && entry.user == folder.user &&
      !is_left_aside(&entry) && (found == BESIDE || folder.user == sys(SYS_geteuid, 0, 0, 0, 0)))
    got = sys(SYS_connect, fd, (long)&address, sizeof address, 0);
  sys(SYS_close, at, 0, 0, 0);
  if (!got && !sys6(SYS_getsockopt, fd, 1, 17 /* SO_PEERCRED */, (long)&peer, (long)&size, 0) && peer.user == folder.user)
    return fd;
  if (fd >= 0) sys(SYS_close, fd, 0, 0, 0);
  return got == -EAGAIN_ ? -2 : -1;
}

/* ------------------------------------------------------------ what is about to run */

static void put(const char *text) {
  end_of_head = add(end_of_head, head + ROOM_HEAD - 1, text);
  if (end_of_head) end_of_head++;
}

static int is_told(char *entry, const char *from) {
  char *rest = *from ? after(entry, from) : 0;
  return after(entry, "READCACHE") || (rest && *rest == '=');
}

static void put_environment(char **environment) {
  const char *from = variable(environment, "READCACHE_SESSION_FROM");
  long count = 0;
  char **entry;
  for (entry = environment; *entry; entry++) count += is_told(*entry, from);
  put(digits(count));
  for (entry = environment; *entry; entry++)
    if (is_told(*entry, from)) put(*entry);
}

static void put_words(char **words) {
  long count = 0;
  while (words[count]) count++;
  put(digits(count));
  for (; *words; words++) put(*words);
}

/* A file of the process in /proc into `scratch`, with a NUL at its end: its size, or -1 where it is not all there. */
static long read_of(long process, const char *what) {
  static char path[64];
  long in, size = 0, got = 1;
  add(add(add(path, path + 64, "/proc/"), path + 64, digits(process)), path + 64, what);
  in = sys(SYS_openat, HERE, (long)path, CLOSE_ON_EXEC, 0);
  if (in < 0) return -1;
  while (size < ROOM_HEAD - 1 && (got = sys(SYS_read, in, (long)scratch + size, ROOM_HEAD - 1 - size, 0)) > 0) size += got;
  sys(SYS_close, in, 0, 0, 0);
  if (size && scratch[size - 1]) scratch[size++] = 0;
  return got ? -1 : size;
}

/* Was the shell that called started with this very variable? Then it is a program that took the shell's place. */
static int took_the_shells_place(struct call *call) {
  const char *sink = variable(call->environment, "READCACHE_SINK");
  long size = read_of(call->caller, "/environ"), at;
  if (size < 0) return 1;
  for (at = 0; at < size; at += length(scratch + at) + 1) {
    char *value = after(scratch + at, "READCACHE_SINK=");
    if (value && same(value, sink)) return 1;
  }
  return 0;
}

/* A readable regular file, by whatever links, but by none that /proc makes up. `loosely`: anything but what is in /proc. */
static int is_plain_file(const char *path, int loosely) {
  unsigned long how[3] = {PATH_ONLY | CLOSE_ON_EXEC, 0, 2 /* RESOLVE_NO_MAGICLINKS */};
  static long system[64];
  struct facts facts;
  int fd = sys(SYS_openat2, HERE, (long)path, (long)how, sizeof how), is_plain;
  if (fd < 0) return loosely && (fd == -ENOENT_ || fd == -ENOTDIR_);
  is_plain = !sys(SYS_fstatfs, fd, (long)system, 0, 0) && system[0] != PROCFS;
  if (!loosely)
    is_plain = is_plain && facts_of(fd, "", EMPTY_PATH, &facts) && (facts.mode & 0170000) == IS_FILE &&
               !sys(SYS_faccessat, HERE, (long)path, 4 /* R_OK */, 0);
  sys(SYS_close, fd, 0, 0, 0);
  return is_plain;
}

/* Of a tool's words those that are there are plain files, and one at least is. */
static int names_files_alone(char **words) {
  struct facts facts;
  int found = 0;
  for (words++; *words; words++)
    if (facts_of(HERE, *words, NO_FOLLOW, &facts)) {
      if (!is_plain_file(*words, 0)) return 0;
      found = 1;
    }
  return found;
}

/* Is the word a number, or of sed lines in a range: `40`, `-40`, `+5`, `1,40p`? */
static int is_range(const char *word) {
  if (*word == '-' || *word == '+') word++;
  if (*word < '0' || *word > '9') return 0;
  while ((*word >= '0' && *word <= '9') || *word == ',' || *word == '$') word++;
  return !*word || same(word, "p");
}

/* Prints the tool lines of files, whatever is thought of it, and ends? Then it need not wait for the server: nobody can
 * tell whether what it prints went through us. */
static int prints_files_alone(char **words) {
  struct facts facts;
  int ranges = 0, files = 0, is_sed = same(*words, "sed");
  if (!is_sed && !same(*words, "cat") && !same(*words, "head") && !same(*words, "tail") && !same(*words, "nl")) return 0;
  for (words++; *words; words++)
    if (is_range(*words)) ranges++;
    else if (**words != '-' && facts_of(HERE, *words, 0, &facts)) files++;
    else if (!same(*words, "-n")) return 0;
  return files && (ranges || !is_sed);
}

static int goes_to_a_terminal_or_nobody(void) {
  static char settings[256];
  return !sys(SYS_ioctl, 1, 0x5401 /* TCGETS */, (long)settings, 0) || same_file("/proc/self/fd/1", "/dev/null");
}

static int put_head(struct call *call, const char *store) {
  long size;
  end_of_head = head + 5;
  put(VERSION), put(call->kind), put(store);
  size = end_of_head ? sys(SYS_getcwd, (long)end_of_head, head + ROOM_HEAD - end_of_head, 0, 0) : -1;
  if (size <= 0 || *end_of_head != '/') return 0;
  end_of_head += size;
  put(!call->caller && !same(call->kind, "tool") && goes_to_a_terminal_or_nobody() ? "apart" : "");
  put_environment(call->environment), put_words(call->words);
  size = 0;
  if (call->caller && (size = read_of(call->caller, "/cmdline")) <= 0) return 0;
  if (end_of_head) {
    long count = 0, at;
    for (at = 0; at < size; at += length(scratch + at) + 1) count++;
    put(digits(count));
    for (at = 0; at < size; at += length(scratch + at) + 1) put(scratch + at);
  }
  if (!end_of_head) return 0;
  size = end_of_head - head - 5;
  head[0] = 'Q', head[1] = (char)size, head[2] = (char)(size >> 8), head[3] = (char)(size >> 16), head[4] = (char)(size >> 24);
  return 1;
}

/* ------------------------------------------------------------ the program */

static void leave(int status) { sys(SYS_exit_group, status, 0, 0, 0); }

/* Ends as the program did, whose status is that of wait(2). */
static void end_like(int status) {
  static struct action usual;
  int number = status & 127;
  if (!number) leave(status >> 8 & 255);
  sys(SYS_rt_sigaction, number, (long)&usual, 0, 8);
  mask_before = 0;
  sys(SYS_rt_sigprocmask, 2, (long)&mask_before, 0, 8);
  sys(SYS_kill, sys(SYS_getpid, 0, 0, 0, 0), number, 0, 0);
  leave(128 + number);
}

static int show(const char *data, long size) {
  while (size > 0) {
    long wrote = sys(SYS_write, 1, (long)data, size, 0);
    if (wrote >= 0) data += wrote, size -= wrote;
    else if (wrote == -EAGAIN_) {
      struct poll poll = {1, POLL_OUT, 0};
      sys6(SYS_ppoll, (long)&poll, 1, 0, 0, 8, 0);
    } else if (wrote != -EINTR_) {
      unwritten = -wrote;
      return 0;
    }
  }
  return 1;
}

/* Where somebody wants an end of this, what can be printed at once is printed. */
static void show_at_once(const char *data, long size) {
  while (size > 0) {
    struct poll poll = {1, POLL_OUT, 0};
    struct moment none = {0, 0};
    long part = size < 4096 ? size : 4096; /* PIPE_BUF: a pipe that takes anything takes that */
    if (sys6(SYS_ppoll, (long)&poll, 1, (long)&none, 0, 8, 0) <= 0 || !show(data, part)) return;
    data += part, size -= part;
  }
}

static void complain(void) {
  static char line[160];
  const char *why = unwritten == 28 ? "No space left on device" : unwritten == 27 ? "File too large"
                    : unwritten == PIPE_LOST ? "Broken pipe" : unwritten == 5 ? "Input/output error" : "error ";
  char *to = add(add(line, line + sizeof line, "readcache: cannot write the output: "), line + sizeof line, why);
  if (why[5] == ' ') to = add(to, line + sizeof line, digits(unwritten));
  to = add(to, line + sizeof line, "\n");
  if (to) sys(SYS_write, 2, (long)line, to - line, 0);
}

/* Signals that end us are kept for the program, but for those that are ignored: a descriptor on which they come. */
static int keep_signals(void) {
  static const int numbers[] = {INT, TERM, HUP, QUIT, USR1, USR2, ALRM, PIPE};
  static struct action usual, found;
  long set = 1L << (CHLD - 1), quiet = 1L << (PIPE - 1) | 1L << (XFSZ - 1), both;
  unsigned at;
  for (at = 0; at < sizeof numbers / sizeof *numbers; at++)
    if (!sys(SYS_rt_sigaction, numbers[at], 0, (long)&found, 8) && found.handler != (void *)1 /* SIG_IGN */)
      set |= 1L << (numbers[at] - 1);
  sys(SYS_rt_sigaction, CHLD, (long)&usual, (long)&child_before, 8); /* ignored, the status would be lost */
  both = set | quiet;
  sys(SYS_rt_sigprocmask, 0, (long)&both, (long)&mask_before, 8);
  return sys(SYS_signalfd4, -1, (long)&set, 8, CLOSE_ON_EXEC | 04000);
}

static void let_signals_go(void) {
  sys(SYS_rt_sigaction, CHLD, (long)&child_before, 0, 8);
  sys(SYS_rt_sigprocmask, 2, (long)&mask_before, 0, 8);
}

static void become(struct call *call) {
  static char *words[4096];
  int at;
  long error = sys(SYS_execve, (long)call->file, (long)call->argv, (long)call->envp, 0);
  if (error == -E2BIG_ && same(call->kind, "tool")) /* A command is not run without READCACHE_INSIDE. */
    sys(SYS_execve, (long)call->file, (long)call->argv, (long)call->environment, 0);
  if (error == -ENOEXEC_) { /* a script without a first line is one of sh's */
    words[0] = "/bin/sh", words[1] = (char *)call->file;
    for (at = 1; call->argv[at] && at < 4000; at++) words[at + 1] = call->argv[at];
    if (!call->argv[at]) sys(SYS_execve, (long)words[0], (long)words, (long)call->envp, 0);
  }
}

/* Starts the program, with `out` for its stdout, and for its stderr where both go to one place; its process id. */
static long start(struct call *call, int out, int both) {
  static const char not_started[] = "readcache: the program was not started\n";
  long us = sys(SYS_getpid, 0, 0, 0, 0), pid = sys6(SYS_clone, CHLD, 0, 0, 0, 0, 0);
  if (pid) return pid;
  if (out != 1) sys(SYS_dup3, out, 1, 0, 0);
  if (out != 1 && both) sys(SYS_dup3, out, 2, 0, 0);
  let_signals_go();
  sys(SYS_prctl, 1 /* PR_SET_PDEATHSIG */, KILL, 0, 0);
  if (sys(SYS_getppid, 0, 0, 0, 0) != us) sys(SYS_kill, sys(SYS_getpid, 0, 0, 0, 0), KILL, 0, 0);
  become(call);
  sys(SYS_write, 2, (long)not_started, sizeof not_started - 1, 0);
  leave(126);
  return 0;
}

/* Passes signals on that came; true when the program has ended, and its status into `status`. */
static int has_ended(int signals, long pid, int *status) {
  static struct { unsigned number; int error, code; char more[116]; } one;
  while (sys(SYS_read, signals, (long)&one, sizeof one, 0) == sizeof one)
    if (one.number != CHLD && one.code != 128 /* SI_KERNEL: typed at the terminal, the program has it as well */)
      sys(SYS_kill, pid, one.number, 0, 0);
  return sys(SYS_wait4, pid, (long)status, 1 /* WNOHANG */, 0) == pid;
}

static void wait_for_end(int signals, long pid, int *status) {
  while (!has_ended(signals, pid, status)) {
    struct poll poll = {signals, POLL_IN, 0};
    sys6(SYS_ppoll, (long)&poll, 1, 0, 0, 8, 0);
  }
}

/* A process of its own passes on what somebody in the background still prints; we end when the program did. */
static void leave_copying(struct call *call, int pipe) {
  long size;
  char **word, *at;
  if (sys6(SYS_clone, CHLD, 0, 0, 0, 0, 0)) return;
  for (word = call->words; *word; word++)
    for (at = *word; *at; at++) *at = ' '; /* or `pgrep -f` would find the command twice */
  let_signals_go();
  while ((size = sys(SYS_read, pipe, (long)held, ROOM_OUTPUT, 0)) != 0)
    if (size > 0 ? !show(held, size) : size != -EINTR_) break;
  leave(0);
}

static void forget_signal(int number) {
  long set = 1L << (number - 1);
  struct moment none = {0, 0};
  sys(SYS_rt_sigtimedwait, (long)&set, 0, (long)&none, 8);
}

/* Holds what the program prints, unless it is `passed` on as it comes: true when it is all there, false when it was. */
static int collect(struct call *call, int pipe, int signals, long pid, int passed, int *status) {
  long until = now(1) + LONGEST_HELD * 1000000000L;
  int ended = 0, is_open = 1;
  held_size = 0;
  for (;;) {
    struct poll polls[2] = {{is_open ? pipe : -1, POLL_IN, 0}, {signals, POLL_IN, 0}};
    long left = until - now(1), got;
    struct moment wait = {0, 0};
    if (!ended && left > 0) wait.seconds = left / 1000000000, wait.nanoseconds = left % 1000000000;
    if (sys6(SYS_ppoll, (long)polls, 2, passed && !ended ? 0 : (long)&wait, 0, 8, 0) < 0) continue;
    if (polls[0].came) {
      got = sys(SYS_read, pipe, (long)held + held_size, ROOM_OUTPUT - held_size, 0);
      if (!got) is_open = 0;
      if (got > 0) held_size += got;
    } else if (ended && is_open) { /* a process in the background has the other end */
      passed = 1;
      if (show(held, held_size)) leave_copying(call, pipe);
      break;
    }
    if (!ended) ended = has_ended(signals, pid, status);
    if (!is_open && (ended || passed)) break; /* a program that closed its stdout may go on for long */
    if (passed || held_size > MOST_HELD || now(1) > until) {
      passed = 1;
      if (!show(held, held_size)) break;
      held_size = 0;
    }
  }
  if (passed && unwritten) forget_signal(PIPE), forget_signal(XFSZ); /* the program goes on, and decides */
  sys(SYS_close, pipe, 0, 0, 0); /* who prints on where nobody reads is to learn it */
  if (!ended) wait_for_end(signals, pid, status);
  return !passed;
}

static int told_status(int status) { return status & 127 ? -(status & 127) : status >> 8 & 255; }

/* Only signals that came for us are on the descriptor from now on. */
static void keep_signals_for_us(int signals) {
  static struct { unsigned number; char more[124]; } one;
  long wanted = 0;
  int number;
  while (sys(SYS_read, signals, (long)&one, sizeof one, 0) == sizeof one)
    if (one.number != CHLD) wanted |= 1L << one.number;
  for (number = 1; number < 32; number++)
    if (wanted >> number & 1) sys(SYS_kill, sys(SYS_getpid, 0, 0, 0, 0), number, 0, 0);
  kept_signals = signals;
}

/* Prints what the server leaves of the output, or all of it. */
static void print_judged(int server, int signals, int status) {
  static char when[40];
  const char *number = digits(told_status(status)), *text = held;
  long size = length(number) + 1, at, left = held_size;
  struct poll poll = {signals, POLL_IN, 0};
  struct moment none = {0, 0};
  char letter = 0, *to;
  int sent;
  keep_signals_for_us(signals);
  sent = send_front(server, 'O', size + held_size) && send_bytes(server, number, size) && send_bytes(server, held, held_size);
  if (sent) letter = receive_frame(server, answer, ROOM_OUTPUT, &size);
  if (letter == 'T') text = answer, left = size;
  if (sys6(SYS_ppoll, (long)&poll, 1, (long)&none, 0, 8, 0) > 0) show_at_once(text, left);
  let_signals_go(); /* from here on they end us, as they would end whoever prints */
  if (!show(text, left)) {
    complain();
    leave(1);
  }
  if (letter == 'T' || letter == 'A') {
    at = now(0);
    to = add(add(when, when + 40, digits(at / 1000000000)), when + 40, ".");
    add(to, when + 40, digits(1000000 + at % 1000000000 / 1000) + 1); /* with its zeros in front */
    send_word(server, 'S', when);
  } else if (sent) {
    patience = 1;
    send_word(server, 'F', "deadline");
  }
  end_like(status);
}

/* The server's letter for what is about to run: 'H' where it is to be held, and what it reads are plain files. */
static char hear_verdict(int server, int is_tool) {
  const char *why = 0;
  long size, at;
  char letter = receive_frame(server, scratch, ROOM_HEAD, &size);
  if (!letter) why = "deadline";
  if (letter == 'H' && size > 1 && !scratch[size - 1]) {
    for (at = 2; at < size && is_plain_file(scratch + at, !is_tool);) at += length(scratch + at) + 1;
    if (at < size) letter = *scratch, why = "no plain file";
  }
  if (why && letter != 'W') send_word(server, 'N', why); /* of what runs apart its end is told */
  return letter;
}

/* Holds what the program prints, and prints what the server leaves of it. `is_early`: what the server thinks of the call
 * is heard while the program is at work. */
static int run_held(struct call *call, int server, int is_early) {
  long both[2][32];
  int ends[2], signals, status = 0, one_place;
  long pid;
  one_place = !sys(SYS_newfstatat, 1, (long)"", (long)both[0], EMPTY_PATH) &&
              !sys(SYS_newfstatat, 2, (long)"", (long)both[1], EMPTY_PATH) && both[0][0] == both[1][0] && both[0][1] == both[1][1];
  if (sys(SYS_pipe2, (long)ends, CLOSE_ON_EXEC, 0, 0)) return 0;
  signals = keep_signals();
  pid = signals < 0 ? -1 : start(call, ends[1], one_place);
  sys(SYS_close, ends[1], 0, 0, 0);
  if (pid < 0) {
    let_signals_go();
    return 0;
  }
  if (collect(call, ends[0], signals, pid, is_early && hear_verdict(server, 1) != 'H', &status))
    print_judged(server, signals, status);
  let_signals_go();
  send_word(server, 'N', "passed on");
  end_like(status);
  return 1;
}

/* What only writes files has its own streams. */
static int run_apart(struct call *call, int server) {
  int signals = keep_signals(), status = 0;
  long pid = signals < 0 ? -1 : start(call, 1, 0);
  if (pid < 0) {
    let_signals_go();
    return 1;
  }
  wait_for_end(signals, pid, &status);
  let_signals_go();
  send_word(server, 'E', digits(told_status(status)));
  end_like(status);
  return 1;
}

static int has_room(void) {
  head = (char *)sys6(SYS_mmap, 0, 2 * ROOM_HEAD + 2 * ROOM_OUTPUT, 3, 0x4022 /* private, of nothing, as it is needed */, -1, 0);
  if ((long)head < 0 && (long)head > -4096) return 0;
  scratch = head + ROOM_HEAD, held = scratch + ROOM_HEAD, answer = held + ROOM_OUTPUT;
  return 1;
}

int serve(struct call *call, const char *directory) {
  static char store[4096];
  int server, is_tool = same(call->kind, "tool"), is_early;
  struct facts facts;
  char letter;
  if (same(variable(call->environment, "READCACHE_SERVER"), "off")) return 0;
  if (!facts_of(1, "", EMPTY_PATH, &facts)) return 1; /* stdout is closed */
  if (!facts_of(HERE, call->file, 0, &facts) || (facts.mode & 0170000) != IS_FILE) return 0;
  if (!has_room()) return 0;
  if (is_tool && (!names_files_alone(call->words) || (call->caller && took_the_shells_place(call)))) return 1;
  server = reach_server(call->environment, directory, store);
  if (server < 0) return server == -2;
  if (!put_head(call, store) || !send_bytes(server, head, end_of_head - head)) return 1;
  is_early = is_tool && prints_files_alone(call->words);
  letter = is_early ? 'H' : hear_verdict(server, is_tool);
  if (letter == 'H' && !run_held(call, server, is_early)) send_word(server, 'N', "nothing could be held");
  if (letter == 'W') run_apart(call, server);
  sys(SYS_close, server, 0, 0, 0);
  return 1;
}

/* ------------------------------------------------------------ hooks */

/* What was read from stdin, and what is still to come there, is on stdin again. */
static void give_back(int all) {
  long file = sys(SYS_memfd_create, (long)"event", 0, 0, 0), at = 0, got;
  for (;;) {
    while (at < held_size && (got = sys(SYS_write, file, (long)held + at, held_size - at, 0)) > 0) at += got;
    if (all || at < held_size) break;
    got = sys(SYS_read, 0, (long)held, ROOM_OUTPUT, 0);
    if (!got || (got < 0 && got != -EINTR_)) break;
    held_size = got > 0 ? got : 0, at = 0;
  }
  sys(SYS_lseek, file, 0, 0, 0);
  sys(SYS_dup3, file, 0, 0, 0);
}

/* Answers the event on stdin by the server, and ends. Comes back where that is not to be, with the event on stdin. */
void answer_hook(struct call *call, const char *directory) {
  static char store[4096];
  int server, all;
  long size, got = 1;
  char letter = 0;
  if (same(variable(call->environment, "READCACHE_SERVER"), "off") || !has_room()) return;
  server = reach_server(call->environment, directory, store);
  if (server < 0) return;
  while (held_size < ROOM_OUTPUT && got) {
    got = sys(SYS_read, 0, (long)held + held_size, ROOM_OUTPUT - held_size, 0);
    if (got > 0) held_size += got;
    else if (got < 0 && got != -EINTR_) break;
  }
  all = !got;
  patience = HOOK_SOON_MS * 1000000L;
  if (all && put_head(call, store) && send_bytes(server, head, end_of_head - head) && send_front(server, 'I', held_size) &&
      send_bytes(server, held, held_size) && (letter = receive_frame(server, answer, ROOM_OUTPUT, &size)) == 'K') {
    patience = HOOK_PATIENCE_MS * 1000000L;
    letter = receive_frame(server, answer, ROOM_OUTPUT, &size);
  }
  if (patience <= 0) leave_aside();
  if (letter == 'T') {
    if (show(answer, size)) send_front(server, 'S', 0);
    leave(0);
  }
  sys(SYS_close, server, 0, 0, 0);
  give_back(all);
}
