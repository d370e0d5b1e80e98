import { discoverTools, ToolRegistry } from 'toolwright';
import { container } from 'tsyringe';
import '../toolwright.gen.js';
import { WeatherStation } from './weather-station.js';
import { WeatherTools } from './weather-tools.js';

/** The satellite's tools. The server uses only their definitions. */
export function discoverWeatherTools(stationUrl?: string): ToolRegistry {
  container.registerInstance(WeatherStation, new WeatherStation(stationUrl));
  return new ToolRegistry().register(...discoverTools({ toolsets: [WeatherTools] }));
}
