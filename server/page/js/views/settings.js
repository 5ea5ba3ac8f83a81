/** This view. */
import { View } from '../view.js';
customElements.define('w-settings', class extends View {});
