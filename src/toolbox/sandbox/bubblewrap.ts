import { dirname } from 'node:path';
import { isWithin } from '../paths/folder-path.js';
import type { ClosedPath } from './closed-paths.js';

/** What a sandbox lets commands have. */
export interface SandboxPlan {
  /** May be written. */
  readonly root: string;
  /** The home of the user for commands: an empty one. */
  readonly home: string;
  /** May be read, beside the programs of the system. */
  readonly readable: readonly string[];
  readonly closed: readonly ClosedPath[];
  /** The socket of the proxy for allowed hosts; without one there is no network. */
  readonly proxySocket?: string;
}

/** Where the socket and the proxy are, for commands. */
const INNER_SOCKET = '/run/toolwright-proxy.sock';
const PROXY_PORT = 3128;

/** Programs and libraries. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store'];

/** What programs need to know of the machine, and nothing that is secret. */
const SETTINGS =
  'alternatives ca-certificates ca-certificates.conf crypto-policies fonts group hosts java ld.so.cache ld.so.conf ld.so.conf.d locale.alias localtime machine-id mime.types nsswitch.conf os-release passwd perl pki/ca-trust pki/tls/certs profile protocols python3 resolv.conf services ssl/cert.pem ssl/certs ssl/openssl.cnf terminfo timezone'.split(
    ' ',
  );

/**
 * Arguments of bubblewrap for a command: a file system of its own with nothing in it but what is named here, no
 * network, no capabilities, and no processes but its own.
 */
export function bubblewrapArguments({
  root,
  home,
  readable,
  closed,
  proxySocket,
}: SandboxPlan): readonly string[] {
  const read = (path: string): string[] => ['--ro-bind-try', path, path];
  return [
    ...['--unshare-all', '--unshare-user', '--die-with-parent', '--cap-drop', 'ALL'],
    ...[...SYSTEM, ...SETTINGS.map((name) => `/etc/${name}`)].flatMap(read),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/var/tmp'],
    ...(home === '/' ? [] : ['--tmpfs', home]),
    ...readable.flatMap(read),
    ...['--bind', root, root],
    ...closingArguments(root, closed),
    ...(proxySocket === undefined ? [] : ['--bind', proxySocket, INNER_SOCKET]),
    ...['--remount-ro', '/', '--'],
    ...(proxySocket === undefined ? [] : ['/bin/bash', '--norc', '-c', BRIDGE, 'bash']),
  ];
}

/** Waits until the proxy answers inside, and goes on as the command. */
const BRIDGE = `socat TCP-LISTEN:${PROXY_PORT},bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:${INNER_SOCKET} & for i in {1..200}; do (exec 3<>/dev/tcp/127.0.0.1/${PROXY_PORT}) 2> /dev/null && break; sleep 0.02; done; exec "$@"`;

/** By which programs find the proxy. */
export function proxyEnvironment(): Readonly<Record<string, string>> {
  const url = `http://127.0.0.1:${PROXY_PORT}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy'];
  return { ...Object.fromEntries(names.map((name) => [name, url])), NODE_USE_ENV_PROXY: '1' };
}

/** From the outside in. The folders on the way are mounted, too, so that none can be moved away with what is in it. */
function closingArguments(root: string, closed: readonly ClosedPath[]): readonly string[] {
  const ways = closed
    .flatMap(({ path }) => foldersBetween(root, path))
    .map((path) => ({ path, how: 'way' as const }));
  const all = new Map([...ways, ...closed].map((one) => [one.path, one]));
  return [...all.values()]
    .sort((one, other) => one.path.split('/').length - other.path.split('/').length)
    .flatMap((one) => {
      if (one.how === 'way') return ['--bind', one.path, one.path];
      if (one.how === 'unwritable') return ['--ro-bind', one.path, one.path];
      return one.isFolder
        ? ['--perms', '0000', '--tmpfs', one.path, '--remount-ro', one.path]
        : ['--ro-bind', '/dev/null', one.path];
    });
}

function foldersBetween(root: string, path: string): readonly string[] {
  const folders: string[] = [];
  for (let at = dirname(path); isWithin(at, root); at = dirname(at)) folders.push(at);
  return folders;
}
