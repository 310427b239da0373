/* page.h: the files of src/report/page, made part of the program by tools/embed.py.
 *
 * The digests go into the page's Content-Security-Policy: what is not this very script does not run.
 */
#ifndef TD_REPORT_PAGE_H
#define TD_REPORT_PAGE_H

extern const char td_page_html[], td_page_css[], td_page_js[];
extern const char td_page_html_sha256[], td_page_css_sha256[], td_page_js_sha256[];

#endif
