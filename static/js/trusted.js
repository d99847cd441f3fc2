// The default policy of Trusted Types, which htmx needs for the HTML that it places. It makes HTML
// alone: what would make a script of a text stays refused.
window.trustedTypes?.createPolicy("default", { createHTML: (html) => html });
