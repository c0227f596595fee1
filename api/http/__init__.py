"""The HTTP framework: routes, parameters, bodies, formats, errors, OpenAPI. It knows no resource."""
