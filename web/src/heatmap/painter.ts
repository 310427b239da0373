// Tiles onto the screen, with WebGL2.
//
// A tile is a texture of one float per cell, just as the server sent it; the fragment shader bends the value,
// looks it up in the colour map and writes the colour. So a change of scale costs one frame and no request.
// NaN is told by its bits: compilers of shaders may assume that comparisons never see one.
import type { Camera, Extent } from "./camera";
import { infColour, mapSize, nanColour, type Ramp } from "./colour";
import type { Plane, Tile } from "./tiles";
import { tileSide } from "./tiles";

const vertexSource = `#version 300 es
uniform vec4 box;   /* left, top, right, bottom in clip space */
uniform vec2 share; // of the texture that is inside the matrix
out vec2 place;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  place = corner * share;
  gl_Position = vec4(mix(box.xy, box.zw, corner), 0.0, 1.0);
}`;

const fragmentSource = `#version 300 es
precision highp float;
uniform highp sampler2D values;
uniform sampler2D colours;
uniform int kind; // 0 linear, 1 symlog, 2 log
uniform vec2 limits;
uniform float knee;
uniform bool signedRange;
uniform vec3 nanColour, infColour;
uniform ivec2 end; // where in the last row the tensor has ended: column, row
in vec2 place;
out vec4 colour;
float bend(float v) {
  if (kind == 1) return sign(v) * log(1.0 + abs(v) / knee);
  if (kind == 2) return log(max(abs(v), knee));
  return v;
}
void main() {
  ivec2 size = textureSize(values, 0);
  ivec2 cell = min(ivec2(place * vec2(size)), size - 1);
  if (cell.y == end.y && cell.x >= end.x) { colour = vec4(0.0); return; }
  float v = texelFetch(values, cell, 0).r;
  uint bits = floatBitsToUint(v) & 0x7fffffffu;
  if (bits > 0x7f800000u) { colour = vec4(nanColour, 1.0); return; }
  if (bits == 0x7f800000u) { colour = vec4(infColour, 1.0); return; }
  float bent = bend(v);
  float span = limits.y - limits.x;
  float t = signedRange ? (bent < 0.0 ? 0.5 - 0.5 * bent / limits.x : 0.5 + 0.5 * bent / limits.y)
                        : (bent - limits.x) / (span == 0.0 ? 1.0 : span);
  colour = texelFetch(colours, ivec2(int(clamp(t, 0.0, 1.0) * ${mapSize - 1}.0 + 0.5), 0), 0);
}`;

const kinds = { linear: 0, symlog: 1, log: 2 } as const;

/** A pane in the pixels of the page, from the upper left of the canvas. */
export interface Pane extends Extent {
  left: number;
  top: number;
}

export class Painter {
  private readonly gl: WebGL2RenderingContext;
  private readonly program: WebGLProgram;
  private readonly textures = new Map<Tile, WebGLTexture>();
  private readonly maps = new Map<Uint8Array, WebGLTexture>();
  private readonly places = new Map<string, WebGLUniformLocation | null>();

  /** Throws where WebGL2 is missing. The drawing is kept, so that it can be read back and printed. */
  constructor(private readonly canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, preserveDrawingBuffer: true });
    if (!gl) throw new Error("no WebGL2");
    this.gl = gl;
    this.program = this.link();
    gl.useProgram(this.program);
    gl.uniform1i(this.at("values"), 0);
    gl.uniform1i(this.at("colours"), 1);
    gl.uniform3f(this.at("nanColour"), nanColour[0] / 255, nanColour[1] / 255, nanColour[2] / 255);
    gl.uniform3f(this.at("infColour"), infColour[0] / 255, infColour[1] / 255, infColour[2] / 255);
    gl.bindVertexArray(gl.createVertexArray());
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
  }

  clear(): void {
    const { gl } = this;
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.enable(gl.SCISSOR_TEST);
  }

  /** The tiles of one pane, in the order given: coarse ones first, finer ones over them. */
  draw(pane: Pane, pixelRatio: number, plane: Plane, camera: Camera, ramp: Ramp, tiles: Tile[]): void {
    const { gl } = this;
    const left = Math.round(pane.left * pixelRatio);
    const width = Math.round(pane.width * pixelRatio);
    const height = Math.round(pane.height * pixelRatio);
    const bottom = this.canvas.height - Math.round(pane.top * pixelRatio) - height;
    gl.viewport(left, bottom, width, height);
    gl.scissor(left, bottom, width, height);
    gl.uniform1i(this.at("kind"), kinds[ramp.kind]);
    gl.uniform2f(this.at("limits"), ramp.low, ramp.high);
    gl.uniform1f(this.at("knee"), ramp.knee);
    gl.uniform1i(this.at("signedRange"), ramp.signed ? 1 : 0);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.mapOf(ramp.table));
    gl.activeTexture(gl.TEXTURE0);
    for (const tile of tiles) this.drawTile(tile, pane, plane, camera);
  }

  drop(tile: Tile): void {
    const texture = this.textures.get(tile);
    if (texture) this.gl.deleteTexture(texture);
    this.textures.delete(tile);
  }

  release(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  private drawTile(tile: Tile, pane: Extent, plane: Plane, camera: Camera): void {
    const { gl } = this;
    const cell = 2 ** tile.level;
    const x0 = tile.x * tileSide * cell;
    const y0 = tile.y * tileSide * cell;
    const x1 = Math.min(x0 + tile.columns * cell, plane.columns);
    const y1 = Math.min(y0 + tile.rows * cell, plane.rows);
    const sx = (2 * camera.scale) / pane.width;
    const sy = (-2 * camera.scale) / pane.height;
    gl.uniform4f(this.at("box"), (x0 - camera.x) * sx, (y0 - camera.y) * sy, (x1 - camera.x) * sx, (y1 - camera.y) * sy);
    gl.uniform2f(this.at("share"), (x1 - x0) / (tile.columns * cell), (y1 - y0) / (tile.rows * cell));
    const endRow = (plane.rows - 1 - y0) / cell; // a whole number where the last row has cells of its own
    if (plane.lastColumns < plane.columns && Number.isInteger(endRow)) gl.uniform2i(this.at("end"), Math.ceil((plane.lastColumns - x0) / cell), endRow);
    else gl.uniform2i(this.at("end"), 0, -1);
    gl.bindTexture(gl.TEXTURE_2D, this.textureOf(tile));
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  private textureOf(tile: Tile): WebGLTexture {
    const known = this.textures.get(tile);
    if (known) return known;
    const { gl } = this;
    const texture = this.newTexture();
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R32F, tile.columns, tile.rows, 0, gl.RED, gl.FLOAT, tile.values);
    this.textures.set(tile, texture);
    return texture;
  }

  private mapOf(table: Uint8Array): WebGLTexture {
    const known = this.maps.get(table);
    if (known) return known;
    const { gl } = this;
    const texture = this.newTexture();
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, mapSize, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, table);
    this.maps.set(table, texture);
    return texture;
  }

  private newTexture(): WebGLTexture {
    const { gl } = this;
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
    return texture;
  }

  private at(name: string): WebGLUniformLocation | null {
    let place = this.places.get(name);
    if (place === undefined) {
      place = this.gl.getUniformLocation(this.program, name);
      this.places.set(name, place);
    }
    return place;
  }

  private link(): WebGLProgram {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [type, source] of [[gl.VERTEX_SHADER, vertexSource], [gl.FRAGMENT_SHADER, fragmentSource]] as const) {
      const shader = gl.createShader(type);
      if (!shader) throw new Error("WebGL2 made no shader");
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) ?? "WebGL2 did not link");
    return program;
  }
}
