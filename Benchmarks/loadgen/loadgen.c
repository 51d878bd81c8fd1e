// Drives an HTTP/1.1 server over keep-alive connections and prints what it saw as JSON. No allocation and one system call each way
// per request; anything but a 2xx answer, or one of the status asked for, is an error. See usage() for the modes; times are monotonic, latencies in microseconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void usage(void) {
    fputs(
        "loadgen --port P --template FILE --values FILE --connections C --seconds S [options]\n"
        "  --template FILE   one HTTP request; {value}, {proof} and {length} (of the body) are filled in\n"
        "  --values FILE     one value per line; each is used once, by whichever connection comes first\n"
        "  --proofs FILE     one per line for each request, in the order of the values; none is used twice\n"
        "  --cyclic          values are used again and again\n"
        "  --rotate MEMBER   connection i begins with value i and takes the JSON string MEMBER of each answer as its next value\n"
        "  --keep FILE       with --rotate: where the values at the end go, for the next run\n"
        "  --save FILE       where the bodies of good answers go, one per line\n"
        "  --expect TEXT     a good answer without TEXT in its body is an error\n"
        "  --status S        good answers have this status and not 2xx; TEXT is then looked for in the head\n"
        "  --rate R          open loop: R requests per second, latency from the moment a request was due\n"
        "  --arrivals WHAT   poisson (default) or uniform, with --rate\n"
        "  --warmup W        seconds before counting begins (default 0)\n"
        "  --threads N       default 1\n", stderr);
    exit(64);
}

static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("loadgen: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// -- latencies: 64 steps per power of two, so that no figure is off by more than 1.6 % -------------------------------------------

enum { SUB = 6, BUCKETS = (64 - SUB) << SUB };
typedef struct { uint64_t count[BUCKETS], total, sum, max; } Histogram;

static void record(Histogram *h, uint64_t ns) {
    int shift = ns < (2u << SUB) ? 0 : 63 - __builtin_clzll(ns) - SUB;
    h->count[((uint64_t)shift << SUB) + (ns >> shift)]++;
    h->total++;
    h->sum += ns;
    if (ns > h->max) h->max = ns;
}

static double quantile(const Histogram *h, double q) {
    uint64_t wanted = (uint64_t)ceil(q * (double)h->total), seen = 0;
    for (uint64_t i = 0; i < BUCKETS; i++) {
        seen += h->count[i];
        if (h->count[i] && seen >= wanted) {
            uint64_t shift = i < (2u << SUB) ? 0 : (i >> SUB) - 1, low = (i - (shift << SUB)) << shift;
            return ((double)low + (double)((UINT64_C(1) << shift) - 1) / 2) / 1000;
        }
    }
    return 0;
}

// -- what is sent ----------------------------------------------------------------------------------------------------------------

typedef struct { const char *bytes; size_t count; } Text;
typedef enum { LITERAL, VALUE, PROOF, LENGTH } Kind;
typedef struct { Kind kind; Text text; bool body; } Part;

static Part parts[64];
static int part_count;
static size_t body_literals, body_values, template_count;
static Text *values, *proofs;
static size_t value_count, proof_count, longest_value;
static atomic_size_t next_value;

/// A file's bytes, copied: --keep may write the file that --values read.
static Text slurp(const char *path) {
    FILE *file = fopen(path, "r");
    struct stat status;
    if (!file || fstat(fileno(file), &status) != 0) die("%s: %s", path, strerror(errno));
    if (status.st_size == 0) die("%s is empty", path);
    char *bytes = malloc((size_t)status.st_size);
    if (!bytes || fread(bytes, 1, (size_t)status.st_size, file) != (size_t)status.st_size) die("%s cannot be read", path);
    fclose(file);
    return (Text){ bytes, (size_t)status.st_size };
}

static void read_template(const char *path) {
    Text t = slurp(path);
    template_count = t.count;
    const char *body = memmem(t.bytes, t.count, "\r\n\r\n", 4);
    if (!body) die("%s: no end of the headers", path);
    body += 4;
    const char *at = t.bytes, *end = t.bytes + t.count, *begin = at;
    while (at <= end) {
        Kind kind = LITERAL;
        if (at < end && *at == '{') {
            if ((size_t)(end - at) >= 7 && memcmp(at, "{value}", 7) == 0) kind = VALUE;
            else if ((size_t)(end - at) >= 7 && memcmp(at, "{proof}", 7) == 0) kind = PROOF;
            else if ((size_t)(end - at) >= 8 && memcmp(at, "{length}", 8) == 0) kind = LENGTH;
        }
        // A literal never reaches over the start of the body, so that the body's length is the sum of its parts.
        if (at == end || kind != LITERAL || at == body) {
            if (at > begin) {
                parts[part_count++] = (Part){ LITERAL, { begin, (size_t)(at - begin) }, begin >= body };
                if (begin >= body) body_literals += (size_t)(at - begin);
                begin = at;
            }
            if (kind != LITERAL) {
                parts[part_count++] = (Part){ kind, { NULL, 0 }, at >= body };
                if (kind == VALUE && at >= body) body_values++;
                at += kind == LENGTH ? 8 : 7;
                begin = at;
                continue;
            }
            if (part_count > 60) die("%s: too many placeholders", path);
        }
        at++;
    }
}

static Text *read_lines(const char *path, size_t *count) {
    Text t = slurp(path), *lines = NULL;
    size_t room = 0;
    for (const char *at = t.bytes, *end = t.bytes + t.count; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        if (*count == room) {
            room = room ? room * 2 : 1024;
            lines = realloc(lines, room * sizeof *lines);
        }
        lines[(*count)++] = (Text){ at, (size_t)(stop - at) };
        if ((size_t)(stop - at) > longest_value) longest_value = (size_t)(stop - at);
        at = stop + 1;
    }
    return lines;
}

static size_t render(char *out, Text value, Text proof) {
    char *at = out;
    for (int i = 0; i < part_count; i++) {
        Text text = parts[i].kind == VALUE ? value : parts[i].kind == PROOF ? proof : parts[i].text;
        if (parts[i].kind == LENGTH) {
            char digits[24];
            int n = snprintf(digits, sizeof digits, "%zu", body_literals + body_values * value.count);
            memcpy(at, digits, (size_t)n);
            at += n;
        } else {
            memcpy(at, text.bytes, text.count);
            at += text.count;
        }
    }
    return (size_t)(at - out);
}

// -- connections -----------------------------------------------------------------------------------------------------------------

enum { IN_SIZE = 64 * 1024, VALUE_SIZE = 4096, STATUSES = 600 };

typedef struct {
    int socket;
    bool busy;
    uint64_t due;
    size_t have;
    char *in, *out, *value;
    size_t value_count;
} Connection;

typedef struct {
    pthread_t thread;
    int poll, connections, first;
    double rate;
    Connection *connection;
    int *idle, idle_count;
    Histogram latencies;
    uint64_t answers, good, statuses[STATUSES], closed, unexpected, random;
    struct rusage begin, end;
    uint64_t measured_from, measured_until;
    bool exhausted;
    char first_error[600];
} Worker;

static struct {
    const char *rotate, *expect;
    int port, connections, threads, status;
    double seconds, warmup, rate;
    bool cyclic, uniform;
    FILE *save;
} options = { .threads = 1 };
static pthread_mutex_t save_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t start_ns, count_ns, stop_ns;

static void note(Worker *w, const char *what, Text detail) {
    if (!w->first_error[0]) {
        snprintf(w->first_error, sizeof w->first_error, "%s: %.*s", what, (int)(detail.count < 500 ? detail.count : 500), detail.bytes);
    }
}

static void dial(Worker *w, int i) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)options.port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    Connection *c = &w->connection[i];
    c->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->socket < 0 || connect(c->socket, (struct sockaddr *)&address, sizeof address) != 0) die("connect: %s", strerror(errno));
    int one = 1;
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->socket, F_SETFL, O_NONBLOCK);
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)i };
    if (epoll_ctl(w->poll, EPOLL_CTL_ADD, c->socket, &event) != 0) die("epoll_ctl: %s", strerror(errno));
    c->have = 0;
}

/// Sends the next request of a connection; false when the values are used up.
static bool post(Worker *w, int i, uint64_t due) {
    Connection *c = &w->connection[i];
    Text value = { c->value, c->value_count }, proof = { NULL, 0 };
    if (!options.rotate || proof_count > 0) {
        size_t n = atomic_fetch_add_explicit(&next_value, 1, memory_order_relaxed);
        if ((!options.rotate && n >= value_count && !options.cyclic) || (proof_count > 0 && n >= proof_count)) {
            w->exhausted = true;
            return false;
        }
        if (!options.rotate) value = values[n % value_count];
        if (proof_count > 0) proof = proofs[n];
    }
    size_t count = render(c->out, value, proof), sent = 0;
    c->busy = true;
    c->due = due;
    while (sent < count) {
        ssize_t n = send(c->socket, c->out + sent, count - sent, MSG_NOSIGNAL);
        if (n > 0) sent += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR) break;  // the answer that does not come tells
    }
    return true;
}

/// Takes the string member `name` of a JSON object; no escapes, which tokens do not have.
static bool member(Text body, const char *name, Text *found) {
    char quoted[80];
    int n = snprintf(quoted, sizeof quoted, "\"%s\"", name);
    const char *at = memmem(body.bytes, body.count, quoted, (size_t)n), *end = body.bytes + body.count;
    if (!at) return false;
    for (at += n; at < end && (*at == ' ' || *at == ':'); at++) {}
    if (at == end || *at++ != '"') return false;
    const char *stop = memchr(at, '"', (size_t)(end - at));
    if (!stop) return false;
    *found = (Text){ at, (size_t)(stop - at) };
    return true;
}

/// A complete answer in the buffer: its status and body, and how long it is. 0 while it is not complete.
static size_t parse(Connection *c, int *status, Text *body) {
    char *end = memmem(c->in, c->have, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - c->in) + 4, length = 0;
    *status = c->have > 12 ? atoi(c->in + 9) : 0;
    for (char *line = memchr(c->in, '\n', head); line && line + 1 < end; line = memchr(line + 1, '\n', (size_t)(end - line))) {
        if (strncasecmp(line + 1, "content-length:", 15) == 0) length = strtoul(line + 16, NULL, 10);
        else if (strncasecmp(line + 1, "transfer-encoding:", 18) == 0) die("the server answers in chunks, which this tool does not read");
    }
    if (head + length > IN_SIZE) die("an answer of %zu bytes is too long", length);
    if (c->have < head + length) return 0;
    *body = (Text){ c->in + head, length };
    return head + length;
}

static void answered(Worker *w, int i, int status, Text body, uint64_t now) {
    Connection *c = &w->connection[i];
    c->busy = false;
    w->answers++;
    Text value = { NULL, 0 };
    bool good = options.status ? status == options.status : status >= 200 && status < 300;
    Text where = options.status ? (Text){ c->in, (size_t)(body.bytes - c->in) } : body;
    if (!good) {
        w->statuses[status > 0 && status < STATUSES ? status : 0]++;
        note(w, "answer", (Text){ c->in, c->have });
    } else if ((options.expect && !memmem(where.bytes, where.count, options.expect, strlen(options.expect)))
               || (options.rotate && !(member(body, options.rotate, &value) && value.count < VALUE_SIZE))) {
        good = false;
        w->unexpected++;
        note(w, "unexpected answer", (Text){ c->in, c->have });
    }
    if (!good) return;
    if (options.rotate) {
        memcpy(c->value, value.bytes, value.count);
        c->value_count = value.count;
    }
    if (options.save) {
        pthread_mutex_lock(&save_lock);
        fwrite(body.bytes, 1, body.count, options.save);
        fputc('\n', options.save);
        pthread_mutex_unlock(&save_lock);
    }
    if (now >= count_ns && now < stop_ns) {
        w->good++;
        record(&w->latencies, now > c->due ? now - c->due : 0);
    }
}

/// Reads what there is. - Returns: whether the connection is free for the next request.
static bool receive(Worker *w, int i) {
    Connection *c = &w->connection[i];
    ssize_t n = recv(c->socket, c->in + c->have, IN_SIZE - c->have, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n <= 0) {
        bool lost = c->busy;
        if (lost) {
            w->closed++;
            note(w, "closed", (Text){ c->in, c->have });
        }
        close(c->socket);
        dial(w, i);
        c->busy = false;
        return lost;
    }
    c->have += (size_t)n;
    int status = 0;
    Text body;
    size_t used = parse(c, &status, &body);
    if (!used) return false;
    answered(w, i, status, body, now_ns());
    c->have = 0;
    return true;
}

static double next_interval(Worker *w) {
    if (options.uniform) return 1e9 / w->rate;
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    double uniform = ((double)(w->random >> 11) + 1) / 9007199254740993.0;
    return -log(uniform) * 1e9 / w->rate;
}

static void *work(void *argument) {
    Worker *w = argument;
    struct epoll_event events[256];
    double due = (double)start_ns;
    int in_flight = 0;
    bool counting = false, stopped = false;
    while (now_ns() < start_ns) usleep(100);
    if (w->rate == 0) {
        for (int i = 0; i < w->connections; i++) in_flight += post(w, i, now_ns());
    } else {
        for (int i = 0; i < w->connections; i++) w->idle[w->idle_count++] = i;
        due += next_interval(w);
    }
    for (;;) {
        uint64_t now = now_ns();
        if (!counting && now >= count_ns) {
            counting = true;
            w->measured_from = now;
            getrusage(RUSAGE_THREAD, &w->begin);
        }
        if (!stopped && (now >= stop_ns || (w->exhausted && in_flight == 0))) {
            stopped = true;
            if (!counting) w->measured_from = now, getrusage(RUSAGE_THREAD, &w->begin);
            w->measured_until = now;
            getrusage(RUSAGE_THREAD, &w->end);
        }
        if (stopped && (in_flight == 0 || now > stop_ns + 5000000000u)) break;
        if (w->rate != 0 && !stopped) {
            while (due <= (double)now && w->idle_count > 0 && !w->exhausted) {
                int i = w->idle[--w->idle_count];
                if (!post(w, i, (uint64_t)due)) break;
                in_flight++;
                due += next_interval(w);
            }
        }
        int64_t wait = 50000000;
        if (w->rate != 0 && !stopped && w->idle_count > 0 && due - (double)now_ns() < (double)wait) {
            wait = (int64_t)(due - (double)now_ns());
            if (wait < 0) wait = 0;
        }
        struct timespec timeout = { .tv_sec = 0, .tv_nsec = wait };
        int n = epoll_pwait2(w->poll, events, 256, &timeout, NULL);
        for (int e = 0; e < n; e++) {
            int i = (int)events[e].data.u32;
            bool was_busy = w->connection[i].busy;
            if (!receive(w, i) || !was_busy) continue;
            in_flight--;
            if (w->rate != 0) w->idle[w->idle_count++] = i;
            else if (!stopped && now_ns() < stop_ns) in_flight += post(w, i, now_ns());
        }
    }
    return NULL;
}

// -- beginning and end -----------------------------------------------------------------------------------------------------------

static void prepare(Worker *w, int first, int count, double rate) {
    *w = (Worker){ .first = first, .connections = count, .rate = rate, .random = 0x9e3779b97f4a7c15u + (uint64_t)first * 7919 };
    w->poll = epoll_create1(EPOLL_CLOEXEC);
    w->connection = calloc((size_t)count, sizeof *w->connection);
    w->idle = calloc((size_t)count, sizeof *w->idle);
    for (int i = 0; i < count; i++) {
        Connection *c = &w->connection[i];
        c->in = malloc(IN_SIZE);
        c->out = malloc(template_count + 8 * (longest_value + VALUE_SIZE) + 64);
        c->value = malloc(VALUE_SIZE);
        if (options.rotate) {
            Text value = values[first + i];
            if (value.count >= VALUE_SIZE) die("a value of %zu bytes is too long", value.count);
            memcpy(c->value, value.bytes, value.count);
            c->value_count = value.count;
        }
        dial(w, i);
    }
}

static double cpu_us(const struct rusage *from, const struct rusage *to) {
    return (double)(to->ru_utime.tv_sec - from->ru_utime.tv_sec + to->ru_stime.tv_sec - from->ru_stime.tv_sec) * 1e6
        + (double)(to->ru_utime.tv_usec - from->ru_utime.tv_usec + to->ru_stime.tv_usec - from->ru_stime.tv_usec);
}

static void quote(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') printf("\\%c", *text);
        else if ((unsigned char)*text < 0x20) printf("\\u%04x", *text);
        else putchar(*text);
    }
    putchar('"');
}

static void print(Worker *workers) {
    static Worker all;
    double cpu = 0, seconds = 0;
    for (int t = 0; t < options.threads; t++) {
        Worker *w = &workers[t];
        for (int i = 0; i < BUCKETS; i++) all.latencies.count[i] += w->latencies.count[i];
        all.latencies.total += w->latencies.total;
        all.latencies.sum += w->latencies.sum;
        if (w->latencies.max > all.latencies.max) all.latencies.max = w->latencies.max;
        for (int i = 0; i < STATUSES; i++) all.statuses[i] += w->statuses[i];
        all.answers += w->answers;
        all.good += w->good;
        all.closed += w->closed;
        all.unexpected += w->unexpected;
        all.exhausted |= w->exhausted;
        cpu += cpu_us(&w->begin, &w->end);
        double measured = (double)(w->measured_until - w->measured_from) / 1e9;
        if (measured > seconds) seconds = measured;
        if (!all.first_error[0]) memcpy(all.first_error, w->first_error, sizeof all.first_error);
    }
    const Histogram *h = &all.latencies;
    printf("{\"requests\":%lu,\"answers\":%lu,\"seconds\":%.4f,\"rate\":%.1f,", all.good, all.answers, seconds, seconds > 0 ? (double)all.good / seconds : 0);
    printf("\"p50\":%.1f,\"p95\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f,\"mean\":%.1f,", quantile(h, .5), quantile(h, .95), quantile(h, .99),
           quantile(h, .999), (double)h->max / 1000, h->total ? (double)h->sum / 1000 / (double)h->total : 0);
    printf("\"cpu_us\":%.3f,\"exhausted\":%s,\"errors\":{", all.good ? cpu / (double)all.good : 0, all.exhausted ? "true" : "false");
    const char *comma = "";
    for (int i = 0; i < STATUSES; i++) {
        if (all.statuses[i]) printf("%s\"%d\":%lu", comma, i, all.statuses[i]), comma = ",";
    }
    if (all.closed) printf("%s\"closed\":%lu", comma, all.closed), comma = ",";
    if (all.unexpected) printf("%s\"unexpected\":%lu", comma, all.unexpected);
    fputs("},\"first_error\":", stdout);
    quote(all.first_error);
    puts("}");
}

int main(int count, char **arguments) {
    const char *keep = NULL, *template = NULL, *list = NULL, *signed_list = NULL;
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        if (strcmp(name, "--cyclic") == 0) { options.cyclic = true; continue; }
        if (i + 1 == count) usage();
        const char *text = arguments[++i];
        if (strcmp(name, "--port") == 0) options.port = atoi(text);
        else if (strcmp(name, "--template") == 0) template = text;
        else if (strcmp(name, "--values") == 0) list = text;
        else if (strcmp(name, "--proofs") == 0) signed_list = text;
        else if (strcmp(name, "--connections") == 0) options.connections = atoi(text);
        else if (strcmp(name, "--threads") == 0) options.threads = atoi(text);
        else if (strcmp(name, "--seconds") == 0) options.seconds = atof(text);
        else if (strcmp(name, "--warmup") == 0) options.warmup = atof(text);
        else if (strcmp(name, "--rate") == 0) options.rate = atof(text);
        else if (strcmp(name, "--arrivals") == 0) options.uniform = strcmp(text, "uniform") == 0;
        else if (strcmp(name, "--rotate") == 0) options.rotate = text;
        else if (strcmp(name, "--expect") == 0) options.expect = text;
        else if (strcmp(name, "--status") == 0) options.status = atoi(text);
        else if (strcmp(name, "--keep") == 0) keep = text;
        else if (strcmp(name, "--save") == 0) { if (!(options.save = fopen(text, "w"))) die("%s: %s", text, strerror(errno)); }
        else usage();
    }
    if (!options.port || !template || !list || options.connections < 1 || options.seconds <= 0 || options.threads < 1
        || options.threads > options.connections) usage();
    read_template(template);
    values = read_lines(list, &value_count);
    if (signed_list) proofs = read_lines(signed_list, &proof_count);
    if (options.rotate && value_count < (size_t)options.connections) die("%zu values for %d connections", value_count, options.connections);

    Worker *workers = calloc((size_t)options.threads, sizeof *workers);
    for (int t = 0, first = 0; t < options.threads; t++) {
        int share = options.connections / options.threads + (t < options.connections % options.threads);
        prepare(&workers[t], first, share, options.rate / options.threads);
        first += share;
    }
    start_ns = now_ns() + 1000000;
    count_ns = start_ns + (uint64_t)(options.warmup * 1e9);
    stop_ns = count_ns + (uint64_t)(options.seconds * 1e9);
    for (int t = 1; t < options.threads; t++) {
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0) die("no thread");
    }
    work(&workers[0]);
    for (int t = 1; t < options.threads; t++) pthread_join(workers[t].thread, NULL);
    if (keep) {
        FILE *file = fopen(keep, "w");
        if (!file) die("%s: %s", keep, strerror(errno));
        for (int t = 0; t < options.threads; t++) {
            for (int i = 0; i < workers[t].connections; i++) {
                Connection *c = &workers[t].connection[i];
                fprintf(file, "%.*s\n", (int)c->value_count, c->value);
            }
        }
        // The values no connection of this run began with.
        for (size_t i = (size_t)options.connections; i < value_count; i++) fprintf(file, "%.*s\n", (int)values[i].count, values[i].bytes);
        fclose(file);
    }
    if (options.save) fclose(options.save);
    print(workers);
    return 0;
}
