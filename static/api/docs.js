// Swagger UI over our own document, light or dark as our pages are; requests of a logged-in person
// carry the CSRF token.
const page = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

function followScheme() {
  page.classList.toggle("dark-mode", page.dataset.theme ? page.dataset.theme === "dark" : dark.matches);
}

dark.addEventListener("change", followScheme);
followScheme();

const root = document.getElementById("swagger-ui");

SwaggerUIBundle({
  url: root.dataset.schema,
  domNode: root,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  validatorUrl: null,
  requestInterceptor: (request) => {
    if (!["GET", "HEAD"].includes((request.method || "GET").toUpperCase())) {
      request.headers["X-CSRFToken"] = root.dataset.csrf;
    }
    return request;
  },
});
