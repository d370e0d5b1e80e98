/** The formats that are checked, and those of JSON Schema and OpenAPI that say something without that. */
export const KNOWN_FORMATS: ReadonlySet<string> = new Set([
  ...['date', 'time', 'date-time', 'iso-time', 'iso-date-time', 'duration'],
  ...['uri', 'uri-reference', 'uri-template', 'url', 'iri', 'iri-reference'],
  ...['email', 'idn-email', 'hostname', 'idn-hostname', 'ipv4', 'ipv6', 'uuid', 'regex'],
  ...['json-pointer', 'json-pointer-uri-fragment', 'relative-json-pointer'],
  ...['byte', 'binary', 'password', 'int32', 'int64', 'float', 'double'],
]);
