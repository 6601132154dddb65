// One import gives an extension what it gets from several frameworks on Apple's systems.
@_exported import TimelineGatewayClient
@_exported import WidgetModel
@_exported import WidgetViews
