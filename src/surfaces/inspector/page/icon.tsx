const SHAPES = {
  tools:
    'M10.5 2.2a3.6 3.6 0 0 0-3.3 5L2.4 12a1.3 1.3 0 0 0 1.8 1.8L9 9a3.6 3.6 0 0 0 4.8-4.4l-2.1 2-2-.5-.5-2z',
  calls: 'M2 5h9M8.5 2.5 11 5 8.5 7.5M14 11H5M7.5 8.5 5 11l2.5 2.5',
  runs: 'M1.5 8H5l2-5 3 10 2-5h2.5',
  chat: 'M2.5 3h11v8h-6l-3 2.5V11h-2z',
  pending: 'M4 2h8M4 14h8M5 2v2.5L8 8l3-3.5V2M5 14v-2.5L8 8l3 3.5V14',
  recordings: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  model: 'M8 1.5 9.6 6.4 14.5 8 9.6 9.6 8 14.5 6.4 9.6 1.5 8l4.9-1.6z',
  good: 'M3 8.5 6.5 12 13 4.5',
  bad: 'M4 4l8 8M12 4l-8 8',
  waiting: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3.2l2 1.3',
  warning: 'M8 2 14.5 13.5h-13zM8 6.5v3M8 11.6v.1',
  send: 'M8 13.5v-11M3.5 7 8 2.5 12.5 7',
  stop: 'M4 4h8v8H4z',
  retry: 'M13.5 8A5.5 5.5 0 1 1 11.6 3.8M13.5 1.8v3.4h-3.4',
  copy: 'M6 6h7.5v7.5H6zM10 6V2.5H2.5V10H6',
  plus: 'M8 3v10M3 8h10',
} as const;

export type IconName = keyof typeof SHAPES;

/** Always beside a text with the same meaning. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={SHAPES[name]} />
    </svg>
  );
}
