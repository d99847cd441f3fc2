// Swagger UI over our own document; requests of a logged-in person carry the CSRF token.
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
