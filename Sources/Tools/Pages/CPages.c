#include "CPages.h"

// The toolchain's compiler has had #embed since before it could be told of C23.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "site/index.html"
};
static const unsigned char style_css[] = {
#embed "site/style.css"
};
static const unsigned char icon_svg[] = {
#embed "site/icon.svg"
};
static const unsigned char page_js[] = {
#embed "site/page.js"
};
static const unsigned char game_js[] = {
#embed "site/game.js"
};
static const unsigned char files_js[] = {
#embed "site/files.js"
};
static const unsigned char chat_js[] = {
#embed "site/chat.js"
};

static const char html[] = "text/html; charset=utf-8";
static const char css[] = "text/css; charset=utf-8";
static const char script[] = "text/javascript; charset=utf-8";
static const char picture[] = "image/svg+xml";

static const CPageFile files[] = {
    {"/", html, index_html, sizeof index_html},
    {"/style.css", css, style_css, sizeof style_css},
    {"/icon.svg", picture, icon_svg, sizeof icon_svg},
    {"/page.js", script, page_js, sizeof page_js},
    {"/game.js", script, game_js, sizeof game_js},
    {"/files.js", script, files_js, sizeof files_js},
    {"/chat.js", script, chat_js, sizeof chat_js},
};

const CPageFile *nigh_page_files(void) { return files; }

size_t nigh_page_file_count(void) { return sizeof files / sizeof *files; }
