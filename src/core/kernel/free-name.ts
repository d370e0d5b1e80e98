/** The first of `name`, `name2`, `name3` … that is not taken; the separator stands before the number. */
export function freeName(wanted: string, isTaken: (name: string) => boolean, separator = ''): string {
  let name = wanted;
  for (let count = 2; isTaken(name); count += 1) name = `${wanted}${separator}${count}`;
  return name;
}
