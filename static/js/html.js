// The one place where text becomes elements. What comes here was rendered and escaped on our server.

const policy = window.trustedTypes?.createPolicy("notewire", { createHTML: (html) => html }) ?? {
  createHTML: (html) => html,
};

/** The nodes of a piece of HTML. */
export function nodes(html) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  return template.content;
}
