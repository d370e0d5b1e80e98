import { Tool, Toolset } from 'toolwright';
import { WeatherStation } from './weather-station.js';

/** The tools that the satellite offers to the assistant. */
@Toolset()
export class WeatherTools {
  constructor(private readonly station: WeatherStation) {}

  /**
   * Look up the weather of a city
   * @param city Name of the city, e.g. Lisbon
   */
  @Tool({ annotations: { readOnly: true } })
  async lookupWeather(city: string, signal: AbortSignal) {
    const { celsius, sky } = await this.station.read(city, signal);
    return `${city} is ${celsius}°C and ${sky}.`;
  }

  /** List the cities that have a weather station */
  @Tool({ annotations: { readOnly: true } })
  listCities() {
    return this.station.cities().join(', ');
  }
}
