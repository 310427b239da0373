/* fuzz_names.c: any file of names, and any name as a template of a layer. What is taken must have a text on
 * both sides, and what a template fits must say so again. */
#include "compare/match/manual_layers.h"
#include "session/names_file.h"

#include <stdlib.h>
#include <string.h>

static void check(const struct td_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        const struct td_name_rule *rule = &names->list[i];
        struct td_layer_template t;
        if (!*rule->pattern || !*rule->stage)
            abort();
        if (strstr(rule->pattern, "{L}") && !td_layer_template_parse(rule->pattern, &t))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct td_names names;
    struct td_layer_template t;
    if (td_names_parse(&names, (const char *)data, size, NULL) == TDBG_OK) {
        check(&names);
        td_names_release(&names);
    }
    char *text = malloc(size + 1);
    if (text) {
        memcpy(text, data, size);
        text[size] = '\0';
        int64_t layer;
        if (td_layer_template_parse(text, &t) && t.head_length + strlen(t.tail) >= size)
            abort();
        (void)(td_layer_template_parse(text, &t) && td_layer_template_fits(&t, text, &layer));
    }
    free(text);
    return 0;
}
