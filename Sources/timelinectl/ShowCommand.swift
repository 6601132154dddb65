import ArgumentParser
import Foundation
import TimelineRuntime

struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show or draw a client's widgets from its archive.",
        discussion: """
            Reads the directory in which a client of this SDK stores its timelines, and shows each \
            placed widget in one of its contexts, by default the first. It runs no code of the app \
            and contacts no gateway: the output is what a screen would show.

            As text, a widget is fresh, stale (the archive says that it must be rebuilt) or a \
            placeholder (no built content can be shown here). ☑ and ☐, or ━● and ●━, are toggles, \
            ( ) buttons, < > links, [ ] images, ▢ shapes, ▓ colours, ░ backgrounds, and ▒ is \
            hidden. A toggle with its own style is shown as the app draws it. A widget that is \
            only in the Smart Stack is shown once for each time the Smart Stack shows it. Live \
            Activities follow: on the Lock Screen, and expanded, compact and minimal in the \
            Dynamic Island. The placed controls come last, unless a location, a family or \
            --locked is given.

            In place of an archive it draws the file of a `#Preview`.

            As a picture, a widget has the size of its family, the colours of its rendering mode, \
            and the scale of StandBy and CarPlay. Fonts and symbols are similar to the platform's, \
            not the same; shadows, filters, changes of scale, the aspect ratios of images, \
            priorities in a layout and the spacing of letters and lines are left out. A page shows \
            several widgets; with --gallery, each in all its contexts. `timelinectl preview` serves \
            that page while the widgets change.

            Examples:
              timelinectl show state/device-1
              timelinectl show state/device-1 --location lockScreen --locked
              timelinectl show state/device-1 --mode accented --dark
              timelinectl show state/device-1 --kind com.mygame.quests --json
              timelinectl show state/device-1 --format html --gallery --output widgets.html
              timelinectl show state/device-1 --format png --location standBy --low-light >it.png
              timelinectl show state/device-1 --format svg --mode accented --tint orange
              timelinectl show state/device-1 --format svg --locale ar --dynamic-type xxLarge
              timelinectl show previews/1-Quests-systemSmall.timeline --format png >it.png
            """)

    @OptionGroup var picture: PictureOptions

    @Option(help: "Location, such as homeScreen, lockScreen or smartStack.")
    var location: String?

    @Option(help: "Rendering mode: fullColor, accented or vibrant.")
    var mode: WidgetRenderingMode?

    @Flag(help: "Locked device: sensitive content is hidden.")
    var locked = false

    @Flag(help: "Dark appearance.")
    var dark = false

    @Flag(name: .customLong("always-on"), help: "Always On display, with reduced luminance.")
    var isAlwaysOn = false

    @Flag(name: .customLong("low-light"), help: "A dark room, in which StandBy is tinted red.")
    var isLowLight = false

    @Flag(name: .customLong("far"), help: "Apple Vision Pro: the person is far away.")
    var isFar = false

    @Option(help: "Draw pictures; png needs rsvg-convert.")
    var format: PictureFormat?

    @Flag(help: "Draw all contexts of each widget, on a page. Needs --format html.")
    var gallery = false

    @Option(
        help: ArgumentHelp("File for the drawing. Default: standard output.", valueName: "file"))
    var output: String?

    @Flag(help: "Print JSON, one line per widget.")
    var json = false

    func validate() throws {
        guard !json || format == nil else {
            throw ValidationError("--json prints data and --format draws: give one of them")
        }
        guard !gallery || format == .html else {
            throw ValidationError("--gallery draws a page: add --format html")
        }
        guard output == nil || format != nil else {
            throw ValidationError("--output is for pictures: add --format svg, html or png")
        }
    }

    func run() throws {
        guard let format else {
            for report in try reports() {
                Terminal.print(report.json, as: json ? .json : .text) { report.text + "\n" }
            }
            return
        }
        guard format != .png || output != nil || isatty(STDOUT_FILENO) == 0 else {
            throw ValidationError("--format png prints bytes: give --output FILE")
        }
        let drawing = try drawing(format)
        guard let output else { return FileHandle.standardOutput.write(drawing) }
        guard FileManager.default.createFile(atPath: output, contents: drawing) else {
            throw ValidationError("--output: cannot write \(output)")
        }
    }

    /// The reports of the selected widgets. Throws `ValidationError` without a readable client
    /// archive.
    func reports() throws -> [WidgetReport] {
        let placed = try picture.selection()
        var state = WidgetDeviceState(
            isAlwaysOn: isAlwaysOn, isLowLight: isLowLight, colorScheme: dark ? .dark : .light,
            renderingMode: mode)
        if isFar { state.levelOfDetail = .simplified }
        if locked {
            state.lock = .lockedWithPasscode
            state.sensitiveContent = SensitiveContentSettings(
                showsOnLockScreen: false, showsInAlwaysOn: false, hiddenComplications: .all)
        }
        let context = WidgetReport.Context(
            placed: placed, location: try location.map { try WidgetLocation(stated: $0) },
            state: state, date: try picture.settings().now)
        let shown = placed.widgets.filter { placed in
            let places = placed.widget.activityPresentation.map { [nil, $0.location] }
            return places?.contains(context.location) ?? (context.location != .dynamicIsland)
        }
        let widgets = shown.flatMap { WidgetReport.all(of: $0, in: context) }
        // A control is drawn for an unlocked device alone.
        guard location == nil, !locked else { return widgets }
        return widgets + placed.controls.map { WidgetReport($0.control, $0.node, in: context) }
    }

    /// Draws the selected widgets, as a page or as the picture of one. Throws `ValidationError` if
    /// there is nothing to draw, or no program for PNG.
    func drawing(_ format: PictureFormat) throws -> Data {
        if gallery { return Data(try PicturePage(galleryOf: picture).html.utf8) }
        let (reports, settings) = (try self.reports(), try picture.settings())
        let sections = reports.compactMap { PicturePage.Section($0, settings) }
        guard let first = sections.first else {
            let reason = reports.first?.faults.first ?? "no widget is placed"
            throw ValidationError("nothing to draw: \(reason)")
        }
        guard format != .html else {
            return Data(PicturePage(title: picture.directory, sections: sections).html.utf8)
        }
        guard sections.count == 1 else {
            throw ValidationError(
                "--format \(format.rawValue) draws one widget, and \(sections.count) match: choose "
                    + "one with --kind and --family, or use --format html")
        }
        let svg = first.pictures[0].svg
        return format == .png ? try PictureFormat.png(of: svg) : Data(svg.utf8)
    }
}

extension WidgetRenderingMode: ExpressibleByArgument {}

enum PictureFormat: String, CaseIterable, ExpressibleByArgument {
    case svg, html, png

    /// The time to draw one picture, seconds.
    private static let drawingSecondsMax = 60

    /// Draws a picture as PNG, with two pixels for each point. Throws `ValidationError` if the
    /// program that draws it is missing, fails or hangs.
    static func png(of svg: String, program: String = "rsvg-convert") throws -> Data {
        let (process, input, output) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["timeout", "\(drawingSecondsMax)", program, "--zoom", "2"]
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        // A program that ends before it has read everything must not end this one.
        let onBrokenPipe = signal(SIGPIPE, SIG_IGN)
        defer { signal(SIGPIPE, onBrokenPipe) }
        try process.run()
        try? input.fileHandleForWriting.write(contentsOf: Data(svg.utf8))
        try? input.fileHandleForWriting.close()
        let picture = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        switch process.terminationStatus {
        case 0: return picture
        case 124:
            throw ValidationError(
                "\(program) has not drawn the picture in \(drawingSecondsMax) s; use --format svg")
        // The status for a program that is not there.
        case 127:
            throw ValidationError(
                "--format png needs \(program), which is not installed. On Debian: apt-get "
                    + "install librsvg2-bin. --format svg and --format html need nothing.")
        default: throw ValidationError("\(program) cannot draw the picture; use --format svg")
        }
    }
}
