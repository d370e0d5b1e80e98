/** A module for `node --import` that makes a package unresolvable, as if it were not installed. */
export function hidePackage(name: string): string {
  const program = `
    import Module from 'node:module';
    const { _resolveFilename } = Module;
    Module._resolveFilename = function (request, ...rest) {
      if (request === '${name}')
        throw Object.assign(new Error('Cannot find it'), { code: 'MODULE_NOT_FOUND' });
      return Reflect.apply(_resolveFilename, this, [request, ...rest]);
    };`;
  return `data:text/javascript,${encodeURIComponent(program)}`;
}
