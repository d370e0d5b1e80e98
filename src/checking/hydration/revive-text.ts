import { Buffer } from 'node:buffer';
import type { Revive } from './revival.js';

/** Text that stands for a value which JSON does not have. Text that does not is a fault. */
export const reviveDate: Revive = textual('must be a valid date', (text) => {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? undefined : date;
});

export const reviveUrl: Revive = textual('must be a valid URL', (text) => URL.parse(text) ?? undefined);

export const reviveBuffer: Revive = textual('must be valid base64', decode);

export const reviveBigInt: Revive = textual('must be the digits of a whole number', (text) =>
  /^-?[0-9]+$/.test(text) ? BigInt(text) : undefined,
);

export const reviveBytes: Revive = textual('must be valid base64', (text) => {
  const buffer = decode(text);
  return buffer && new Uint8Array(buffer);
});

function textual(message: string, read: (text: string) => unknown): Revive {
  return (value, { revival, path }) => {
    const revived = typeof value === 'string' ? read(value) : undefined;
    if (revived === undefined) revival.faults.push({ path, message });
    return revived;
  };
}

/** Both alphabets of RFC 4648, padded or not. Node's decoder skips what it does not know, so that is checked. */
function decode(text: string): Buffer | undefined {
  const digits = text.replace(/={1,2}$/, '');
  return /^[A-Za-z0-9+/_-]*$/.test(digits) && digits.length % 4 !== 1
    ? Buffer.from(digits, 'base64')
    : undefined;
}
