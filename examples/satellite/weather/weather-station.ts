/** What a station has measured. */
export interface Reading {
  readonly celsius: number;
  readonly sky: string;
}

const SAMPLES: ReadonlyMap<string, Reading> = new Map([
  ['Lisbon', { celsius: 18, sky: 'clear' }],
  ['Oslo', { celsius: -3, sky: 'snowing' }],
  ['Nairobi', { celsius: 24, sky: 'cloudy' }],
]);

/** What only this side can reach: the assistant knows nothing of it. */
export class WeatherStation {
  /** Address of a station that measures; without it, the samples. */
  constructor(private readonly url?: string) {}

  cities(): readonly string[] {
    return [...SAMPLES.keys()];
  }

  /** Throws where the station cannot be read or does not know the city. */
  async read(city: string, signal: AbortSignal): Promise<Reading> {
    const known = this.cities().find((one) => one.toLowerCase() === city.trim().toLowerCase());
    if (known === undefined)
      throw new Error(`no station in ${city}; there is one in ${this.cities().join(', ')}`);
    if (this.url === undefined) return SAMPLES.get(known)!;
    const response = await fetch(`${this.url}/readings/${encodeURIComponent(known)}`, { signal });
    if (!response.ok) throw new Error(`the station of ${known} answered ${response.status}`);
    return (await response.json()) as Reading;
  }
}
