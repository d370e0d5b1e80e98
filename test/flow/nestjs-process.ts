import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';

/** The shop of examples/nestjs as a process. It is killed at the end of its `await using` block at the latest. */
export interface ShopProcess extends AsyncDisposable {
  readonly url: string;
  readonly process: NodeProcess;
}

/** Starts the built example and waits until it listens. */
export async function openShopProcess(
  dataFolder: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<ShopProcess> {
  const process = new NodeProcess([builtFile('dist/examples/nestjs/main.js')], {
    folder: dataFolder,
    environment: { PORT: '0', SHOP_DATA: dataFolder, ...environment },
  });
  process.endInput();
  const [, url = ''] = await process.waitFor(/The shop is open at (\S+)\n/);
  return { url, process, [Symbol.asyncDispose]: () => process.kill() };
}
