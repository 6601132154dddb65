import TimelineRuntime

/// A page of pictures, for a browser. Its elements are well-formed as XML.
struct PicturePage {
    struct Section {
        var heading: String
        var details: String
        var pictures: [Picture]
    }

    var title: String
    var sections: [Section]
    /// Whether a browser reloads the page when its server has a new one.
    var isLive = false

    var html: String {
        let title = Picture.escaped(title)
        let body = sections.map { section in
            let figures = section.pictures.map { picture in
                let caption = "<figcaption>\(Picture.escaped(picture.caption))</figcaption>"
                return "<figure>\n\(picture.svg)\n\(caption)</figure>"
            }
            return """
                <h2>\(Picture.escaped(section.heading))</h2>
                <p>\(Picture.escaped(section.details))</p>
                <div>\(figures.joined(separator: "\n"))</div>
                """
        }.joined(separator: "\n")
        // A page with other content has another version. A date that moves is no other content.
        var content = [title]
        for section in sections {
            content += [section.heading, section.details] + section.pictures.map(\.content)
        }
        let version = "v\(FNV1a(Array(content.joined(separator: "\n").utf8)).value)"
        let script = """
            <script>
            const look = async () => {
            try {
            const page = await (await fetch("/")).text();
            if (!page.includes("\(version)")) return location.reload();
            } catch {}
            setTimeout(look, 1000);
            };
            setTimeout(look, 1000);
            </script>
            """
        return """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"/><title>\(title)</title><style>
            body { font: 15px system-ui, sans-serif; margin: 24px; background: #f2f2f7; }
            h2 { font-size: 16px; margin: 24px 0 4px; }
            div { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-end; }
            figure { margin: 8px 0; }
            figcaption { font-size: 12px; max-width: 26em; }
            </style></head><body>
            <h1>\(title)</h1>
            \(body)
            \(isLive ? script : "")
            </body></html>

            """
    }
}

extension PicturePage {
    /// Creates the page of widgets in every context that an archive has drawings for.
    init(galleryOf options: PictureOptions, isLive: Bool = false) throws {
        let (placed, settings) = (try options.selection(), try options.settings())
        let context = WidgetReport.Context(
            placed: placed, state: WidgetDeviceState(), date: settings.now)
        let controls = placed.controls.compactMap {
            Section(WidgetReport($0.control, $0.node, in: context), settings)
        }
        self.init(
            title: placed.title,
            sections: placed.widgets.map { Self.section(of: $0, in: placed, settings) } + controls,
            isLive: isLive)
    }

    /// Returns the pictures of a widget: one for each archived context, StandBy in low light, an
    /// update under way if content is marked for it, and the placeholder.
    private static func section(
        of one: ClientArchive.PlacedWidget, in placed: PlacedSelection, _ settings: PictureSettings
    ) -> Section {
        let (widget, device) = (one.widget, placed.device)
        let timeline = try? placed.timeline(of: widget)
        let placeholder = try? placed.archive.placeholder(of: widget)
        let traits = placed.traits(of: widget)
        let rules = PictureSizes.rules(on: device)
        let night = WidgetDeviceState(isLowLight: true, colorScheme: .dark)
        var environments = rules.drawnEnvironments(of: widget, with: traits, on: device)
        environments += rules.environments(of: widget, with: traits, on: device, state: night)
            .filter(\.isTintedRed)
        if traits.isRelevance { environments.removeAll { $0.location != .smartStack } }
        func drawn(_ environment: WidgetEnvironment, isPending: Bool = false) -> Picture? {
            let isHidden = environment.redactionReasons.contains(.placeholder)
            let own = isHidden ? nil : timeline?.node(at: settings.now, in: environment)
            guard let node = own ?? placeholder?.node(at: settings.now, in: environment),
                !isPending || node.isInvalidatable
            else { return nil }
            var settings = settings
            settings.isPending = settings.isPending || isPending
            return Picture(one.title, of: node, with: traits, in: environment, settings)
        }
        var pictures = environments.map { drawn($0) }
        if let first = environments.first {
            let hidden = try? rules.environment(
                of: widget, with: traits, at: first.location, on: device,
                state: WidgetDeviceState(renderingMode: first.widgetRenderingMode),
                hasContent: false)
            pictures += [drawn(first, isPending: true), hidden.flatMap { drawn($0) }]
        }
        let state = timeline == nil ? "placeholder" : one.isStale ? "stale" : "fresh"
        return Section(heading: one.title, details: state, pictures: pictures.compactMap(\.self))
    }
}

extension PicturePage.Section {
    /// Creates the section of a widget in one context; `nil` if nothing is shown.
    init?(_ report: WidgetReport, _ settings: PictureSettings) {
        guard let picture = report.picture(settings) else { return nil }
        self.init(
            heading: report.placed.title,
            details: ([report.condition] + report.faults).joined(separator: ", "),
            pictures: [picture])
    }
}

extension WidgetNode {
    /// Whether an update under way changes how the node looks.
    fileprivate var isInvalidatable: Bool {
        marks.contains(.invalidatable) || parts.contains(where: \.isInvalidatable)
    }
}
