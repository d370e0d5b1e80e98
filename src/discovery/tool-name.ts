/** What every provider accepts as a tool's name. */
export const TOOL_NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;

/** A method's name as a tool's name: `findOrders` → `find_orders`, `getHTTPStatus` → `get_http_status`. */
export function toSnakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .replace(/[\s$-]+/g, '_')
    .toLowerCase();
}

/** The fault of a name that {@link TOOL_NAME} does not match. */
export function illegalName(name: string): { readonly problem: string; readonly fix: string } {
  return {
    problem: `the tool name ${JSON.stringify(name)} is not accepted by every provider (${TOOL_NAME.source})`,
    fix: 'a `name` of letters, digits, _ and -, at most 64, not starting with a digit or -',
  };
}
