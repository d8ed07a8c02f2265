/* Overlapped tiles of a chain of loops: what each tile executes, reads and hands over, in local numbers.
 * Everything of a tile is marked with stamps that no other tile has, so that nothing has to be cleared. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *at;
    int64_t n, cap, size;
} Vec;

typedef struct {
    int64_t size, free;
    const int32_t *owner;
    const int64_t *own_ptr;
    const int32_t *own;
} Elements;

typedef struct {
    int64_t set, out;
} Values;

typedef struct {
    int64_t source, target, arity;
    const int32_t *table;
    const int64_t *inv_ptr;
    const int32_t *inv_elem;
    const uint8_t *inv_leg;
} Link;

typedef struct {
    int64_t set, pass, reduces, first_arg, end_arg;
} Step;

typedef struct {
    int64_t dat, map, leg, reads, writes, kills;
} Arg;

typedef struct {
    int64_t set, gap, flagged;
} Pass;

typedef struct {
    int64_t n_sets, n_dats, n_maps, n_steps, n_passes;
    const Elements *sets;
    const Values *dats;
    const Link *maps;
    const Step *steps;
    const Arg *args;
    const Pass *passes;
} Chain;

typedef struct {
    int failed;
    int64_t n_out;
    Vec *out;                     /* the results, see chain_tiles_plan */
    int64_t *foreign;             /* per dat: whether a tile starts from values that another one owns */
    int32_t **need, **mark, **loc, **in_step, **in_pass, **level;
    Vec *needed, *member, *executed, here;
    Vec sorted;
    int32_t stamp;
} Work;

static void *more(Work *w, Vec *v, int64_t n) {
    if (v->n + n > v->cap) {
        int64_t cap = 2 * (v->n + n) + 64;
        char *at = realloc(v->at, (size_t)(cap * v->size));
        if (!at) {
            w->failed = 1;
            return NULL;
        }
        v->at = at, v->cap = cap;
    }
    char *place = v->at + v->n * v->size;
    v->n += n;
    return place;
}

static void push(Work *w, Vec *v, int32_t value) {
    int32_t *place = more(w, v, 1);
    if (place) *place = value;
}

static void push64(Work *w, Vec *v, int64_t value) {
    int64_t *place = more(w, v, 1);
    if (place) *place = value;
}

static void push3(Work *w, Vec *v, int32_t a, int32_t b, int32_t c) {
    int32_t *place = more(w, v, 3);
    if (place) place[0] = a, place[1] = b, place[2] = c;
}

static const int32_t *items(const Vec *v) { return (const int32_t *)(const void *)v->at; }

/* Sort element numbers by three digits of 11 bits; short lists by insertion. */
static void sort(Work *w, Vec *v) {
    int64_t n = v->n, count[2048];
    int32_t *a = (int32_t *)(void *)v->at;
    if (n < 48) {
        for (int64_t i = 1; i < n; i++) {
            int32_t x = a[i];
            int64_t j = i;
            for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
            a[j] = x;
        }
        return;
    }
    w->sorted.n = 0;
    int32_t *b = more(w, &w->sorted, n);
    if (!b) return;
    int32_t *from = a, *to = b;
    for (int shift = 0; shift < 33; shift += 11) {
        memset(count, 0, sizeof count);
        for (int64_t i = 0; i < n; i++) count[(from[i] >> shift) & 2047]++;
        for (int64_t k = 0, sum = 0; k < 2048; k++) {
            int64_t c = count[k];
            count[k] = sum, sum += c;
        }
        for (int64_t i = 0; i < n; i++) to[count[(from[i] >> shift) & 2047]++] = from[i];
        int32_t *swap = from;
        from = to, to = swap;
    }
    memcpy(a, from, (size_t)n * sizeof *a);
}

static void add_member(Work *w, int64_t set, int32_t e, int32_t tile) {
    if (w->mark[set][e] != tile + 1) {
        w->mark[set][e] = tile + 1;
        w->level[set][e] = 0;
        push(w, &w->member[set], e);
    }
}

/* A value is needed while its word is 2 (tile + 1) + 1; 2 (tile + 1) says that it is in the list of the tile. */
static void add_need(Work *w, const Chain *c, int64_t dat, int32_t e, int32_t tile) {
    int32_t *word = &w->need[dat][e];
    if (*word >> 1 != tile + 1) {
        push(w, &w->needed[dat], e);
        add_member(w, c->dats[dat].set, e, tile);
    }
    *word = 2 * (tile + 1) + 1;
}

static int is_needed(const Work *w, int64_t dat, int32_t e, int32_t tile) {
    return w->need[dat][e] == 2 * (tile + 1) + 1;
}

static void execute(Work *w, int64_t set, int32_t e) {
    if (w->in_step[set][e] != w->stamp) {
        w->in_step[set][e] = w->stamp;
        push(w, &w->here, e);
    }
}

/* Find the elements of a loop that write something needed. */
static void find_executed(Work *w, const Chain *c, const Step *step, int32_t tile) {
    const Elements *over = &c->sets[step->set];
    w->here.n = 0;
    w->stamp++;
    for (const Arg *arg = c->args + step->first_arg; arg < c->args + step->end_arg; arg++) {
        if (!arg->writes) continue;
        const Vec *list = &w->needed[arg->dat];
        for (int64_t i = 0; i < list->n; i++) {
            int32_t target = items(list)[i];
            if (!is_needed(w, arg->dat, target, tile)) continue;
            if (arg->map < 0) {
                execute(w, step->set, target);
                continue;
            }
            const Link *map = &c->maps[arg->map];
            for (int64_t k = map->inv_ptr[target]; k < map->inv_ptr[target + 1]; k++)
                if (arg->leg < 0 || map->inv_leg[k] == arg->leg) execute(w, step->set, map->inv_elem[k]);
        }
    }
    if (step->reduces)
        for (int64_t k = over->own_ptr[tile]; k < over->own_ptr[tile + 1]; k++) execute(w, step->set, over->own[k]);
}

/* What the executed elements write anew was not needed before them; what they read was. */
static void go_before(Work *w, const Chain *c, const Step *step, int32_t tile) {
    for (int kills = 1; kills >= 0; kills--)
        for (const Arg *arg = c->args + step->first_arg; arg < c->args + step->end_arg; arg++) {
            if (!(kills ? arg->kills : arg->reads)) continue;
            const Link *map = arg->map < 0 ? NULL : &c->maps[arg->map];
            int64_t first = arg->leg < 0 ? 0 : arg->leg, end = !map ? 1 : arg->leg < 0 ? map->arity : first + 1;
            if (!map) first = 0;
            for (int64_t i = 0; i < w->here.n; i++) {
                int32_t e = items(&w->here)[i];
                for (int64_t leg = first; leg < end; leg++) {
                    int32_t target = map ? map->table[e * map->arity + leg] : e;
                    if (!kills)
                        add_need(w, c, arg->dat, target, tile);
                    else if (is_needed(w, arg->dat, target, tile))
                        w->need[arg->dat][target] = 2 * (tile + 1);
                }
            }
        }
}

static void analyse(Work *w, const Chain *c, int32_t tile) {
    for (int64_t s = 0; s < c->n_sets; s++) w->member[s].n = 0;
    for (int64_t p = 0; p < c->n_passes; p++) w->executed[p].n = 0;
    for (int64_t d = 0; d < c->n_dats; d++) {
        w->needed[d].n = 0;
        const Elements *set = &c->sets[c->dats[d].set];
        if (c->dats[d].out)
            for (int64_t k = set->own_ptr[tile]; k < set->own_ptr[tile + 1]; k++) add_need(w, c, d, set->own[k], tile);
    }
    int64_t pass = -1;
    int32_t of_pass = 0;
    for (int64_t k = c->n_steps - 1; k >= 0 && !w->failed; k--) {
        const Step *step = &c->steps[k];
        find_executed(w, c, step, tile);
        go_before(w, c, step, tile);
        if (step->pass != pass) pass = step->pass, of_pass = ++w->stamp;
        for (int64_t i = 0; i < w->here.n; i++) {
            int32_t e = items(&w->here)[i];
            if (w->in_pass[step->set][e] == of_pass) continue;
            w->in_pass[step->set][e] = of_pass;
            push(w, &w->executed[pass], e);
            add_member(w, step->set, e, tile);
            if (!w->level[step->set][e]) w->level[step->set][e] = (int32_t)(c->n_passes - pass);
        }
    }
}

/* Sort the members of a set whose order is free: owned ones, then those that run in the last pass, in the one before
 * and so on, then those that never run. Each pass is then one run or few.
 */
static void sort_by_level(Work *w, const Chain *c, int64_t s, int32_t tile) {
    const int64_t n = w->member[s].n, last = c->n_passes + 1;
    int32_t *e = (int32_t *)(void *)w->member[s].at;
    w->here.n = w->sorted.n = 0;
    int32_t *first = more(w, &w->here, last + 2), *to = more(w, &w->sorted, n);
    if (!first || !to) return;
    memset(first, 0, (size_t)(last + 2) * sizeof *first);
    for (int64_t i = 0; i < n; i++) {
        int32_t *level = &w->level[s][e[i]];
        *level = c->sets[s].owner[e[i]] == tile ? 0 : *level ? *level : (int32_t)last;
        first[*level + 1]++;
    }
    for (int64_t k = 0; k < last; k++) first[k + 1] += first[k];
    for (int64_t i = 0; i < n; i++) to[first[w->level[s][e[i]]]++] = e[i];
    memcpy(e, to, (size_t)n * sizeof *e);
}

static void number(Work *w, const Chain *c, int32_t tile) {
    for (int64_t s = 0; s < c->n_sets && !w->failed; s++) {
        sort(w, &w->member[s]);
        if (c->sets[s].free) sort_by_level(w, c, s, tile);
        for (int64_t i = 0; i < w->member[s].n; i++) w->loc[s][items(&w->member[s])[i]] = (int32_t)i;
        push64(w, &w->out[0], w->member[s].n);
    }
}

/* Runs of consecutive global and local numbers: first global, first local, length. */
static void write_run(Work *w, Vec *runs, int64_t begin, int32_t e, int32_t local) {
    int32_t *last = runs->n > begin ? (int32_t *)(void *)runs->at + runs->n - 3 : NULL;
    if (last && last[0] + last[2] == e && last[1] + last[2] == local)
        last[2]++;
    else
        push3(w, runs, e, local, 1);
}

static void write_values(Work *w, const Chain *c, int64_t d, int32_t tile) {
    int64_t s = c->dats[d].set;
    const Elements *set = &c->sets[s];
    Vec *in = &w->out[1 + 4 * d], *out = in + 2;
    int64_t begin = in[1].n;
    for (int64_t i = 0; i < w->member[s].n && !w->failed; i++) {
        int32_t e = items(&w->member[s])[i];
        if (!is_needed(w, d, e, tile)) continue;
        write_run(w, &in[1], begin, e, (int32_t)i);
        if (set->owner[e] != tile) w->foreign[d] = 1;
    }
    push64(w, &in[0], in[1].n / 3);
    begin = out[1].n;
    if (c->dats[d].out)
        for (int64_t k = set->own_ptr[tile]; k < set->own_ptr[tile + 1] && !w->failed; k++)
            write_run(w, &out[1], begin, set->own[k], w->loc[s][set->own[k]]);
    push64(w, &out[0], out[1].n / 3);
}

/* Runs of local numbers that a pass executes: first, end, owned. Gaps up to `gap` elements are executed too. */
static void write_pass(Work *w, const Chain *c, int64_t p, int32_t tile) {
    const Pass *pass = &c->passes[p];
    Vec *ptr = &w->out[1 + 4 * c->n_dats + 2 * p], *runs = ptr + 1, *list = &w->executed[p];
    int64_t begin = runs->n;
    for (int64_t i = 0; i < list->n; i++) {
        int32_t *e = (int32_t *)(void *)list->at + i;
        *e = w->loc[pass->set][*e];
    }
    sort(w, list);
    for (int64_t i = 0; i < list->n && !w->failed; i++) {
        int32_t local = items(list)[i], e = items(&w->member[pass->set])[local];
        int32_t owned = pass->flagged && c->sets[pass->set].owner[e] == tile;
        int32_t *last = runs->n > begin ? (int32_t *)(void *)runs->at + runs->n - 3 : NULL;
        if (last && local - last[1] <= pass->gap && owned == last[2])
            last[1] = local + 1;
        else
            push3(w, runs, local, local + 1, owned);
    }
    push64(w, ptr, runs->n / 3);
}

/* Rows of a map in local numbers; a target that the tile does not have is the one behind its last. */
static void write_table(Work *w, const Chain *c, int64_t m, int32_t tile) {
    const Link *map = &c->maps[m];
    Vec *ptr = &w->out[1 + 4 * c->n_dats + 2 * c->n_passes + 2 * m], *rows = &w->member[map->source];
    int32_t *to = more(w, ptr + 1, rows->n * map->arity), none = (int32_t)w->member[map->target].n;
    for (int64_t i = 0; i < rows->n && to; i++) {
        const int32_t *row = map->table + items(rows)[i] * map->arity;
        for (int64_t leg = 0; leg < map->arity; leg++)
            *to++ = w->mark[map->target][row[leg]] == tile + 1 ? w->loc[map->target][row[leg]] : none;
    }
    push64(w, ptr, ptr[1].n);
}

static int32_t **arrays(Work *w, int64_t n, const Chain *c, int per_dat) {
    int32_t **out = calloc((size_t)(n ? n : 1), sizeof *out);
    for (int64_t k = 0; out && k < n; k++) {
        int64_t size = c->sets[per_dat ? c->dats[k].set : k].size;
        out[k] = calloc((size_t)(size ? size : 1), sizeof **out);
        if (!out[k]) w->failed = 1;
    }
    if (!out) w->failed = 1;
    return out;
}

static Vec *vectors(Work *w, int64_t n) {
    Vec *out = calloc((size_t)(n ? n : 1), sizeof *out);
    for (int64_t k = 0; out && k < n; k++) out[k].size = sizeof(int32_t);
    if (!out) w->failed = 1;
    return out;
}

static void free_arrays(int32_t **a, int64_t n) {
    for (int64_t k = 0; a && k < n; k++) free(a[k]);
    free(a);
}

static void free_vectors(Vec *v, int64_t n) {
    for (int64_t k = 0; v && k < n; k++) free(v[k].at);
    free(v);
}

/* Plan some tiles. Results: 0: elements of each set, tile by tile; per dat: first input run of each tile, input
 * runs, first output run, output runs; per pass: first run, runs; per map: first entry, entries. Returns a
 * handle, or 0 when there is no memory.
 */
int64_t chain_tiles_plan(const Chain *c, const int32_t *tiles, int64_t n_tiles, int64_t *foreign) {
    Work *w = calloc(1, sizeof *w);
    if (!w) return 0;
    w->n_out = 1 + 4 * c->n_dats + 2 * c->n_passes + 2 * c->n_maps;
    w->out = vectors(w, w->n_out), w->foreign = foreign;
    w->here.size = w->sorted.size = sizeof(int32_t);
    w->need = arrays(w, c->n_dats, c, 1);
    w->mark = arrays(w, c->n_sets, c, 0), w->loc = arrays(w, c->n_sets, c, 0);
    w->in_step = arrays(w, c->n_sets, c, 0), w->in_pass = arrays(w, c->n_sets, c, 0);
    w->level = arrays(w, c->n_sets, c, 0);
    w->needed = vectors(w, c->n_dats), w->member = vectors(w, c->n_sets), w->executed = vectors(w, c->n_passes);
    for (int64_t k = 0; w->out && k < w->n_out; k += k ? 2 : 1) w->out[k].size = sizeof(int64_t);
    for (int64_t k = 1; w->out && k < w->n_out; k += 2) push64(w, &w->out[k], 0);
    for (int64_t k = 0; k < n_tiles && !w->failed; k++) {
        int32_t tile = tiles[k];
        analyse(w, c, tile);
        number(w, c, tile);
        for (int64_t d = 0; d < c->n_dats; d++) write_values(w, c, d, tile);
        for (int64_t p = 0; p < c->n_passes; p++) write_pass(w, c, p, tile);
        for (int64_t m = 0; m < c->n_maps; m++) write_table(w, c, m, tile);
    }
    free_arrays(w->need, c->n_dats), free_arrays(w->mark, c->n_sets), free_arrays(w->loc, c->n_sets);
    free_arrays(w->in_step, c->n_sets), free_arrays(w->in_pass, c->n_sets), free_arrays(w->level, c->n_sets);
    free_vectors(w->needed, c->n_dats), free_vectors(w->member, c->n_sets), free_vectors(w->executed, c->n_passes);
    free(w->here.at), free(w->sorted.at);
    if (!w->failed) return (int64_t)(intptr_t)w;
    free_vectors(w->out, w->n_out);
    free(w);
    return 0;
}

int64_t chain_tiles_count(int64_t handle, int64_t k) {
    return ((const Work *)(intptr_t)handle)->out[k].n;
}

/* Copy one result and give its memory back. */
void chain_tiles_take(int64_t handle, int64_t k, void *to) {
    Vec *v = &((Work *)(intptr_t)handle)->out[k];
    if (v->n) memcpy(to, v->at, (size_t)(v->n * v->size));
    free(v->at);
    v->at = NULL;
}

void chain_tiles_free(int64_t handle) {
    Work *w = (Work *)(intptr_t)handle;
    free_vectors(w->out, w->n_out);
    free(w);
}
