/** Scopes to choose from: those of the caller, since nobody gives what they lack. */

interface Props {
  scopes: string[];
  chosen: string[];
  onChange: (chosen: string[]) => void;
}

export function Scopes({ scopes, chosen, onChange }: Props) {
  return (
    <fieldset>
      <legend>Scopes</legend>
      {scopes.map((scope) => (
        <label key={scope} class="choice"><input type="checkbox" checked={chosen.includes(scope)} onChange={(event) => onChange(event.currentTarget.checked ? [...chosen, scope] : chosen.filter((one) => one !== scope))} /> {scope}</label>
      ))}
    </fieldset>
  );
}
