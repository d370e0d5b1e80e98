export default function Home() {
  return <h1>Deliveries</h1>;
}
