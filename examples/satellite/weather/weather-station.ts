/** A measurement of a station. */
export interface Reading {
  readonly celsius: number;
  readonly sky: string;
}

const SAMPLES: ReadonlyMap<string, Reading> = new Map([
  ['Lisbon', { celsius: 18, sky: 'clear' }],
  ['Oslo', { celsius: -3, sky: 'snowing' }],
  ['Nairobi', { celsius: 24, sky: 'cloudy' }],
]);

/** The weather station, which only the satellite can reach. */
export class WeatherStation {
  /** Address of a real station; without it, sample data are used. */
  constructor(private readonly url?: string) {}

  cities(): readonly string[] {
    return [...SAMPLES.keys()];
  }

  /** Throws if the station cannot be reached or does not know the city. */
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
