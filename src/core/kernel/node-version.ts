/** The same version as in `engines` of package.json. */
const OLDEST = [22, 13] as const;

/** Why this Node is too old for the package; `undefined` if it is not, or if the runtime is not Node. */
export function oldNode(version: string | undefined = process.versions.node): string | undefined {
  if (version === undefined) return undefined;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
  return isOld ? `toolwright needs Node ${OLDEST.join('.')} or newer; this is ${version}` : undefined;
}
